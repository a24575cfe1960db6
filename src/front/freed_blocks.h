// What a thread of the hardened build has freed and holds back: its quarantine.
#pragma once

#include "harden/quarantine.h"

namespace annex::front {

struct FreedBlocks : harden::Quarantine {
  void flush();
};

}  // namespace annex::front
