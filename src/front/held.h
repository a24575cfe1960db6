// What a thread of the shared flavour holds back of what it has freed, before that goes the shared flavour's way: a
// quarantine in the hardened build (freed_blocks.h), nothing in the others.
#pragma once

#ifdef ANNEX_HELD
#include ANNEX_HELD_HEADER
#endif

namespace annex::front {

struct HoldsNothing {
  void flush() {}
};

#ifndef ANNEX_HELD
#define ANNEX_HELD HoldsNothing
#endif
using Held = ANNEX_HELD;

}  // namespace annex::front
