// The front end that this library is built with, and sampling and reclaiming before it. The build says which
// (policy/policy.h).
#pragma once

#include "front/frontend.h"
#include "front/reclaiming.h"
#include "front/sampled.h"
#include "policy/policy.h"
#include ANNEX_FRONT_HEADER

namespace annex {

using Front = front::Reclaiming<front::Sampled<Policy::Front>>;
static_assert(front::Frontend<Front>);

}  // namespace annex
