// The front end that this library is built with, and sampling and reclaiming before it. The build says which:
// ANNEX_FRONT, in the header ANNEX_FRONT_HEADER.
#pragma once

#include "front/frontend.h"
#include "front/reclaiming.h"
#include "front/sampled.h"
#include ANNEX_FRONT_HEADER

namespace annex {

using Front = front::Reclaiming<front::Sampled<front::ANNEX_FRONT>>;
static_assert(front::Frontend<Front>);

}  // namespace annex
