// The stash: per class, a ring of batches that the support core sets aside for a program thread, ahead of demand.
//
// A slot itself says whether it is full, so the two sides share no index: the program takes the oldest batch and sets
// its slot empty, and the support core looks whether the slots that it filled first are empty again. A cache line of
// slots moves between the cores once for its four batches; the program prefetches it some blocks before it needs it.
//
// Synchronization: one thread takes, or who has taken the client from it; one at a time fills (under its heap's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "support/batch.h"

namespace annex::support {

inline constexpr uint32_t kStashSlots = 32;  // batches

// How many blocks of a class are there at most (the last batch may go beyond it): 128 KiB of them.
constexpr uint32_t stash_limit(SizeClass c) {
  return std::max(static_cast<uint32_t>(131072 / block_size(c)), 2 * batch_of(c));
}

class Stash {
 public:
  // The program: a batch, empty where there is none.
  Batch take(SizeClass c) {
    const uint32_t at = taken_[c];
    Slot& slot = slots_[c][at % kStashSlots];
    const uint64_t mask = slot.mask.load(std::memory_order_acquire);
    if (mask == 0) return {};
    const uint64_t where = slot.where;
    slot.mask.store(0, std::memory_order_release);
    taken_[c] = at + 1;
    return {reinterpret_cast<char*>(where & kAddress), mask, static_cast<uint32_t>(where >> kAddressBits)};
  }
  // Prefetches what take() will read.
  void fetch(SizeClass c) const { __builtin_prefetch(&slots_[c][taken_[c] % kStashSlots]); }

  // The support core: whether a quarter of the batches that were there when it last counted has been taken. Reads one
  // slot.
  bool needs_refill(SizeClass c) const {
    const uint32_t there = put_[c] - oldest_[c];
    return there == 0 || empty(c, oldest_[c] + there / 4);
  }
  // How many blocks are there: counts again.
  uint32_t held(SizeClass c) {
    for (; oldest_[c] != put_[c] && empty(c, oldest_[c]); ++oldest_[c]) {
      held_[c] -= counts_[c][oldest_[c] % kStashSlots];
    }
    return held_[c];
  }
  // As of the last count.
  bool full(SizeClass c) const { return put_[c] - oldest_[c] == kStashSlots; }
  // Where it is not full.
  void put(SizeClass c, const Batch& batch) {
    const uint32_t at = put_[c]++ % kStashSlots;
    held_[c] += batch.count();
    counts_[c][at] = static_cast<uint16_t>(batch.count());
    Slot& slot = slots_[c][at];
    slot.where = reinterpret_cast<uint64_t>(batch.first) | uint64_t{batch.more} << kAddressBits;
    slot.mask.store(batch.mask, std::memory_order_release);
  }

 private:
  // User addresses leave the upper bits free; `more` is there, so that four slots make a line.
  static constexpr uint32_t kAddressBits = 48;
  static constexpr uint64_t kAddress = (uint64_t{1} << kAddressBits) - 1;
  struct Slot {
    uint64_t where;
    std::atomic<uint64_t> mask;  // 0: the slot is empty
  };

  bool empty(SizeClass c, uint32_t at) const {
    return slots_[c][at % kStashSlots].mask.load(std::memory_order_acquire) == 0;
  }

  alignas(64) uint32_t taken_[kClasses] = {};  // the program's alone
  // The support core's.
  alignas(64) uint32_t put_[kClasses] = {};
  uint32_t oldest_[kClasses] = {};  // the first that it does not know to be empty
  uint32_t held_[kClasses] = {};    // blocks from there on
  uint16_t counts_[kClasses][kStashSlots] = {};
  alignas(64) Slot slots_[kClasses][kStashSlots] = {};
};

}  // namespace annex::support
