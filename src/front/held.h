// What a thread of the shared flavour holds back of what it has freed, before that goes the shared flavour's way: its
// quarantine in the hardened build, nothing in the others.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/holes.h"
#include "harden/quarantine.h"

namespace annex::front {

struct HoldsNothing {
  void flush() {}
  template <class Act>
  void for_taker(Act act) {
    act(HeldBack{});
  }
};

struct FreedBlocks : harden::Quarantine {
  // For its thread.
  void flush();
  // For whoever has taken the heap from its thread (lease.h): calls act(blocks) with those that may go into holes.
  template <class Act>
  void for_taker(Act act) {
    HeldBlock blocks[kPlaces];
    HeldBlock* end = blocks;
    for_each_beside([&](void*& place) { *end++ = {static_cast<Block*>(place), &place}; });
    std::sort(blocks, end, [](const HeldBlock& a, const HeldBlock& b) { return a.block < b.block; });
    act(HeldBack(blocks, end));
  }
};

}  // namespace annex::front
