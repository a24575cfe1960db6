// A thread's outbox: blocks of other heaps that it has freed, collected by slab before they are sent, so that one
// compare-and-swap carries many (BatchIt, section 3).
//
// A small set-associative cache of open batches, keyed by the slab: 8 sets of 2 ways, as in the paper's section 4. A
// batch is sent when its place is needed for another slab (the longer of the two goes), or when it holds kBudget bytes,
// so that a thread that stops freeing keeps at most 16 * kBudget bytes from their owners. Blocks above the budget are
// sent at once.
//
// Synchronization: none; the outbox belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/granule.h"

namespace annex::remote {

class Outbox {
 public:
  static constexpr size_t kBudget = 8192;

  // Takes a block in. Calls send(slab, chain) for each batch that must go. False where the block is the
  // one that was freed last: then nothing has happened.
  template <class Send>
  bool add(Granule* slab, Block* block, Send send) {
    Open* const set = open_ + set_of(slab) * kWays;
    Open* open = set[0].slab == slab ? &set[0] : &set[1];
    if (open->slab != slab) {
      const bool second = set[0].slab != nullptr && (set[1].slab == nullptr || set[1].chain.count > set[0].chain.count);
      open = &set[second];
      close(open, send);
      open->slab = slab;
      open->chain.last = block;
      open->room = static_cast<uint32_t>(std::max<size_t>(kBudget / block_size(slab->size_class), 1));
    }
    if (open->chain.first == block) return false;
    block->next = open->chain.first;
    open->chain.first = block;
    if (++open->chain.count == open->room) close(open, send);
    return true;
  }

  template <class Send>
  void flush(Send send) {
    for (Open& open : open_) close(&open, send);
  }

 private:
  static constexpr size_t kSets = 8;
  static constexpr size_t kWays = 2;

  struct Open {
    Granule* slab = nullptr;  // nullptr: unused
    Chain chain = {};
    uint32_t room = 0;  // the count at which the batch is sent
  };

  // Neighbouring slabs fall into different sets.
  static size_t set_of(const Granule* slab) {
    const uint64_t index = reinterpret_cast<uintptr_t>(slab) / sizeof(Granule);
    return index * 0x9E3779B97F4A7C15u >> 61;
  }
  static_assert(kSets == 8);

  template <class Send>
  static void close(Open* open, Send send) {
    if (open->slab == nullptr) return;
    const Open batch = *open;
    *open = Open{};
    send(batch.slab, batch.chain);
  }

  Open open_[kSets * kWays];
};

}  // namespace annex::remote
