// The stash: per class, a ring of handfuls that the support core sets aside for a program thread, ahead of demand.
//
// A slot says itself whether it is full, so the two sides share no index: the program takes the oldest handful and
// marks its slot empty, and the support core looks whether the slots that it filled first are empty again. A cache line
// of slots moves between the cores once for its four handfuls; the program fetches it some blocks before it needs it.
//
// Synchronization: one thread takes; one at a time fills (under its heap's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "support/handful.h"

namespace annex::support {

inline constexpr uint32_t kStashSlots = 32;  // handfuls
constexpr uint32_t stash_limit(SizeClass c) {
  return std::clamp(static_cast<uint32_t>(131072 / (handful_of(c) * block_size(c))), 2u, kStashSlots);
}

class Stash {
 public:
  // The program: a handful, empty where there is none.
  Handful take(SizeClass c) {
    const uint32_t at = taken_[c];
    Slot& slot = slots_[c][at % kStashSlots];
    const uint64_t mask = slot.mask.load(std::memory_order_acquire);
    if (mask == 0) return {};
    const Handful handful = {slot.first, mask};
    slot.mask.store(0, std::memory_order_release);
    taken_[c] = at + 1;
    return handful;
  }
  // Soon there will be a take.
  void fetch(SizeClass c) const { __builtin_prefetch(&slots_[c][taken_[c] % kStashSlots]); }

  // The support core: how many handfuls are missing from `wanted` (at most kStashSlots).
  uint32_t missing(SizeClass c, uint32_t wanted) const {
    const uint32_t oldest = put_[c] - wanted;
    uint32_t count = 0;
    while (count < wanted && empty(c, oldest + count)) ++count;
    return count;
  }
  // Whether so many are missing from `wanted`, with one look.
  bool misses(SizeClass c, uint32_t wanted, uint32_t count) const { return empty(c, put_[c] - wanted + count - 1); }
  // The caller has seen that there is room.
  void put(SizeClass c, const Handful& handful) {
    Slot& slot = slots_[c][put_[c]++ % kStashSlots];
    slot.first = handful.first;
    slot.mask.store(handful.mask, std::memory_order_release);
  }

 private:
  struct Slot {
    char* first;
    std::atomic<uint64_t> mask;  // 0: the slot is empty
  };

  bool empty(SizeClass c, uint32_t at) const {
    return slots_[c][at % kStashSlots].mask.load(std::memory_order_acquire) == 0;
  }

  alignas(64) uint32_t taken_[kClasses] = {};  // the program's alone
  alignas(64) uint32_t put_[kClasses] = {};    // the support core's
  alignas(64) Slot slots_[kClasses][kStashSlots] = {};
};

}  // namespace annex::support
