// What a thread of the shared flavour holds back of what it has freed, before that goes the shared flavour's way: its
// quarantine in the hardened build, nothing in the others.
#pragma once

#include "harden/quarantine.h"

namespace annex::front {

struct HoldsNothing {
  void flush() {}
};

struct FreedBlocks : harden::Quarantine {
  void flush();
};

}  // namespace annex::front
