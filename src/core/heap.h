// A heap: slabs, and the free lists from which it allocates.
//
// One allocation, from fast to slow:
//   1. pop from free[class]                                       (the front ends inline this)
//   2. refill: take what has been freed into the current slab, whole, in O(1) (and seldom, put in order: list_order.h)
//   3. refill: the first partial slab becomes current
//   4. refill: carve fresh blocks out of the current slab, a page or so at a time; or make those in its holes again
//   (holes.h)
//   5. refill: make a new slab, of a run in the heap's cache or one from the page heap
//
// The free lists live here, not in the slabs: a list moves as a whole, so malloc keeps no count. All blocks of a list
// count as used. free() pushes to the slab's own list and counts one number down (countdown); the events that need work
// (a full slab has a fair share of free blocks again; a slab is empty) are where that number reaches zero. Keeping what
// is freed apart from what is allocated from also avoids that every malloc waits for the store of the free before it.
//
// Synchronization: none. A heap has one holder at a time: the thread whose heap it is (its owner, as its slabs have
// it), or, while no thread has it, whoever holds its inbox's lock (remote/inbox.h). The holder alone writes to the heap
// and to the second line of its slabs' records; but a slab all of whose blocks wait in the inbox is anybody's to let go
// of (reaped: remote/inbox.h). A heap can also be taken from an owner that sleeps (front/lease.h): what may then be
// done to it says so below.
//
// From: Exgen-Malloc (one heap, one free list per slab, one layer of metadata); the lazily carved slabs are common to
// several allocators.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "core/holes.h"
#include "core/list_order.h"
#include "core/run_cache.h"
#include "core/sample_points.h"
#include "core/slab_life.h"
#include "core/slab_record.h"
#include "core/touched_bytes.h"
#include "os/lock.h"
#include "pages/chance.h"
#include "pages/page_heap.h"

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
  // nullptr where that is nothing, or there is more to do.
  Block* take_freed(SizeClass c) {
    Slab* slab = life_.current(c);
    if (slab == nullptr || slab->free == nullptr || tidies_next() || samples_are_taken()) return nullptr;
    ++refills;
    return take_list(slab);
  }

  // A block of a slab of this heap comes back.
  void put_back(Slab* slab, Block* block) {
    set_next(block, slab->free);
    mark_free(slab->key, block);
    slab->free = block;
    if (--slab->countdown == 0) settle(slab, slab->used_after);
  }
  // A chain of the slab's blocks comes back, marked.
  void put_back(Slab* slab, const Chain& chain);

  // free() has counted the slab down to an event; `used` blocks are still in use.
  void settle(Slab* slab, uint32_t used) noexcept;

  // Puts the lists back into their slabs and lets go of every empty slab.
  void flush();
  // Gives back the pages of its slabs in which no block is in use (core/holes.h), until it is to stop; the bytes. After
  // flush().
  size_t make_holes(const os::Stop& stop);
  // The same of some slabs in a heap that is taken from its owner, which holds blocks back, in slabs of this heap or of
  // others; and what is to be done when the owner is back.
  size_t make_holes_aside(Which which, const os::Stop& stop, HeldBack held = {});
  void end_aside();
  // The same bit by bit, of slabs that have settled for ANNEX_PURGE_DELAY: on the owner's slow path.
  void tidy();
  // Lets go of the runs that wait for its next slabs. Also of a heap that is taken.
  void give_runs();
  // The same of those that cost memory, for any thread.
  void give_cached_runs();

  // Slabs of this heap have been let go of, perhaps by another thread than its holder (reaped: remote/inbox.h).
  void note_taken_away(uint32_t granules) { taken_away_.fetch_add(granules, std::memory_order_relaxed); }

  Counter refills;

  // Where samples of a heap profile fall; nullptr until there is a profile.
  SamplePoints* points = nullptr;

 private:
  // How often it is seen whether a round of tidying is due, in refills.
  static constexpr uint64_t kRefillsToLook = 16;

  // Free blocks are linked through themselves.
  struct Linked {
    static bool has_free(const Slab* slab) { return slab->free != nullptr; }
    static void becomes_full(Slab* slab);
  };

  // The slab's freed blocks, all of them; from here on they count as used.
  static Block* take_list(Slab* slab) {
    if (slab->sampled) [[unlikely]]
      end_freed_samples(slab);
    Block* list = slab->free;
    slab->free = nullptr;
    if (wants_order(slab)) [[unlikely]]
      list = in_order(slab, list);
    set_used(slab, usable_of(slab));
    return list;
  }
  // Whether the next refill is one that tidies.
  bool tidies_next() const { return in_round_ || (refills.value() + 1) % kRefillsToLook == 0; }
  void cut_at_sample(Slab* slab, Block* list, uint32_t count);
  static bool note_free_of(Slab* slab, Which which, HeldBack held);
  template <class Make>
  size_t make_holes_in(Slab* slab, Make make);
  template <class Act>
  void for_each_full(HeldBack held, Act act) const;
  Block*& list_of(SizeClass c) { return elsewhere != nullptr ? elsewhere[c] : free[c]; }
  Block* carve(Slab* slab);
  Block* link(Slab* slab, uint32_t first, uint32_t count, bool zero);
  Slab* new_slab(SizeClass c);
  Slab* take_cached(SizeClass c);
  Slab* take_spare(SizeClass c);
  void drop(Slab* slab);

  SlabLife<Linked> life_;
  RunCache cache_;
  Spares spares_;
  TouchedBytes touched_;
  uint32_t granules_ = 0;  // of its slabs and its cache, those taken away included
  uint32_t remade_ = 0;    // slabs
  // Of the rounds in which holes are looked for: when it was last seen whether one is due, and when the last one began;
  // whether there is one now, and whether all slabs are old enough for it, as nothing was allocated for so long; how
  // many slabs it may still walk.
  uint64_t asked_ms_ = 0;
  uint64_t round_ms_ = 0;
  bool in_round_ = false;
  bool after_rest_ = false;
  uint32_t walks_left_ = 0;
  Chance chance_;  // hardened build
  std::atomic<uint32_t> taken_away_{0};
};

}  // namespace annex
