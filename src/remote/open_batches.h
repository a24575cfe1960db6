// The blocks of other heaps that a thread frees, collected by slab, so that what is sent is batches (BatchIt, section
// 3).
//
// A set-associative cache of open batches, keyed by the slab, 2 ways as in the paper's section 4, where 8 sets are an
// educated guess. Here there are more, a line of the host's caches each: threads that free what many others allocated
// see hundreds of slabs in turn, and 8 sets sent most blocks alone. A batch is closed when its place is needed for
// another slab (the longer of the two goes), or when it holds kBudget bytes. Blocks above the budget are closed at
// once.
//
// Synchronization: none; they belong to one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/granule.h"
#include "remote/message.h"

namespace annex::remote {

class OpenBatches {
 public:
  static constexpr size_t kBatches = 128;
  static constexpr size_t kBudget = 2048;
  static_assert(kBudget / kMinAlignment <= kMostBlocks);

  // Takes a block in. Calls close(slab, chain) for each batch that is closed. False where the block is the one that was
  // freed last: then nothing has happened.
  template <class Close>
  bool add(Granule* slab, Block* block, Close close) {
    Open* const set = open_ + set_of(slab) * kWays;
    Open* open = set[0].slab == slab ? &set[0] : &set[1];
    if (open->slab != slab) {
      const bool second = set[0].slab != nullptr && (set[1].slab == nullptr || set[1].count > set[0].count);
      open = &set[second];
      close_one(open, close);
      open->slab = slab;
      open->last = block;
      open->room = static_cast<uint32_t>(std::max<size_t>(kBudget / block_size(slab->size_class), 1));
    }
    if (open->first == block) return false;
    block->next = open->first;
    open->first = block;
    if (++open->count == open->room) close_one(open, close);
    return true;
  }

  template <class Close>
  void close_all(Close close) {
    for (Open& open : open_) close_one(&open, close);
  }

 private:
  static constexpr size_t kWays = 2;
  static constexpr size_t kSets = kBatches / kWays;

  struct Open {
    Granule* slab = nullptr;  // nullptr: unused
    Block* first = nullptr;
    Block* last = nullptr;
    uint32_t count = 0;
    uint32_t room = 0;  // the count at which the batch is closed
  };
  static_assert(sizeof(Open) * kWays == 64);

  // Neighbouring slabs fall into different sets.
  static size_t set_of(const Granule* slab) {
    const uint64_t index = reinterpret_cast<uintptr_t>(slab) / sizeof(Granule);
    return index * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(kSets));
  }
  static_assert(std::has_single_bit(kSets));

  template <class Close>
  static void close_one(Open* open, Close close) {
    if (open->slab == nullptr) return;
    const Open batch = *open;
    *open = Open{};
    close(batch.slab, Chain{batch.first, batch.last, batch.count});
  }

  alignas(64) Open open_[kBatches];
};

}  // namespace annex::remote
