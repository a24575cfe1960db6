// Whether chance decides where things lie: the hardened build's answer to whoever would guess. In the others blocks
// follow each other, as that is good for caches and costs least.
//
//   arenas     at a random place of the address space, blocks at a random distance from the metadata, nothing between
//   slabs      one of the free granules by chance; now and then one is left out for good, and can't be read or written
//   blocks     each kShuffled fresh ones of a slab in random order (core/heap.cpp: carve)
#pragma once

#include <cstdint>

#include "os/random.h"
#include "policy/policy.h"

namespace annex {

inline constexpr bool kByChance = Policy::kByChance;
inline constexpr bool kGuards = Policy::kGuards;
inline constexpr uint32_t kShuffled = Policy::kShuffled;

// Random numbers for places: fast, and not to be told from a few of them. Synchronization: its owner's.
class Chance {
 public:
  // In [0, below), nearly evenly; below is less than 2^32.
  uint32_t below(uint32_t below) { return static_cast<uint32_t>((word() >> 32) * below >> 32); }

  uint64_t word() {
    if (state_ == 0) state_ = os::random_word();
    return os::mixed(++state_);
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace annex
