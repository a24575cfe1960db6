// The front end that this library is built with, and before it guarded samples, heap profiles and reclaiming. The build
// says which (policy/policy.h).
#pragma once

#include "front/frontend.h"
#include "front/profiled.h"
#include "front/reclaiming.h"
#include "front/sampled.h"
#include "policy/policy.h"
#include ANNEX_FRONT_HEADER

namespace annex {

using Front = front::Reclaiming<front::Profiled<front::Sampled<Policy::Front>>>;
static_assert(front::Frontend<Front>);

}  // namespace annex
