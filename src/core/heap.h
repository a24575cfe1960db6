// A heap: the slabs of one owner, and the free lists from which it allocates. Single-threaded code, no atomics.
//
// One allocation, from fast to slow:
//   1. pop from free[class]                                       (the front ends inline this)
//   2. refill: take what has been freed into the current slab, whole, in O(1) (and seldom, put in order: list_order.h)
//   3. refill: the first partial slab becomes current
//   4. refill: carve fresh blocks out of the current slab, a page or so at a time
//   5. refill: make a new slab, of a run in the heap's cache or one from the arena
//
// The free lists live here, not in the slabs: a list moves as a whole, so malloc keeps no count. All blocks of a list
// count as used. free() pushes to the slab's own list and counts one number down; the events that need work (a full
// slab has a fair share of free blocks again; a slab is empty) are where that number reaches zero. Keeping what is
// freed apart from what is allocated from also avoids that every malloc waits for the store of the free before it.
//
// From: Exgen-Malloc (one heap, one free list per slab, one layer of metadata); the lazily carved slabs are common to
// several allocators.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/chance.h"
#include "core/commitment.h"
#include "core/free_block.h"
#include "core/granule.h"
#include "core/list_order.h"
#include "core/run_cache.h"
#include "core/slab_life.h"

namespace annex {

// A statistic: written by one thread, read by any.
class Counter {
 public:
  void operator++() { __atomic_store_n(&value_, value_ + 1, __ATOMIC_RELAXED); }
  uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

 private:
  uint64_t value_ = 0;
};

class Heap {
 public:
  // The blocks that malloc pops, by class; all of one list are from the class's current slab. A front end may keep
  // its lists elsewhere: then `elsewhere` says where. A new heap is all zeros, so that the static ones take no room in
  // the library's file and no page before they are used.
  Block* free[kClasses] = {};
  Block** elsewhere = nullptr;

  // By which free knows the slabs of this heap from those of others.
  uint16_t number = 0;

  // A non-empty list of blocks of the class, for its list; nullptr where memory is exhausted.
  Block* refill(SizeClass c);
  // What refill() looks at first, for the front ends to inline: what has been freed of the class's current slab;
  // nullptr where that is nothing.
  Block* take_freed(SizeClass c) {
    Granule* slab = life_.current(c);
    if (slab == nullptr || slab->free == nullptr) return nullptr;
    ++refills;
    return take(slab);
  }

  // A block of a slab of this heap comes back. `head` is the slab's first granule.
  void put_back(Granule* head, Block* block) {
    set_next(block, head->free);
    mark_free(head->key, block);
    head->free = block;
    if (--head->countdown == 0) settle(head, head->used_after);
  }
  // A chain of the slab's blocks comes back, marked.
  void put_back(Granule* head, const Chain& chain);

  // free() has counted the slab down to an event; `used` blocks are still in use.
  void settle(Granule* head, uint32_t used) noexcept;

  // Puts the lists back into their slabs and lets go of every empty slab.
  void flush();
  // Lets go of the runs that wait for its next slabs.
  void give_runs();

  // A thread other than the owner has let go of slabs of this heap.
  void note_taken_away(uint32_t granules) { taken_away_.fetch_add(granules, std::memory_order_relaxed); }

  Counter refills;

 private:
  // Free blocks are linked through themselves.
  struct Linked {
    static bool has_free(const Granule* slab) { return slab->free != nullptr; }
    static void becomes_full(Granule* slab);
  };

  // The slab's freed blocks, all of them; from here on they count as used.
  static Block* take(Granule* slab) {
    Block* list = slab->free;
    slab->free = nullptr;
    if (wants_order(slab)) [[unlikely]]
      list = in_order(slab, list);
    set_used(slab, slab->carved);
    return list;
  }
  Block*& list_of(SizeClass c) { return elsewhere != nullptr ? elsewhere[c] : free[c]; }
  Block* carve(Granule* slab);
  Granule* new_slab(SizeClass c);
  Granule* take_cached(SizeClass c);
  Granule* take_spare(SizeClass c);
  void drop(Granule* slab);

  SlabLife<Linked> life_;
  RunCache cache_;
  Granule* spares_ = nullptr;  // clean runs of one granule, linked by `next`
  TouchedBytes touched_;
  uint32_t granules_ = 0;  // of its slabs and its cache, those taken away included
  uint32_t remade_ = 0;    // slabs
  Chance chance_;          // hardened build
  std::atomic<uint32_t> taken_away_{0};
};

}  // namespace annex
