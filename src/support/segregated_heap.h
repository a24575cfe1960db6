// The support core's heap: slabs whose free blocks are bits in a bitmap apart, so that neither taking nor returning a
// block touches the block (the segregated layout of SpeedMalloc section 4 and NextGen-Malloc section 3.1.2).
//
// The policy is core/heap.h's: first free blocks of partial slabs, then blocks carved out of the current slab a page at
// a time, then a new slab. Blocks leave in batches and in order of address. A block that is put back twice is found
// here: its bit is set already.
//
// In a slab's record (core/slab_record.h): `countdown` is the number of blocks that are out, `used_after` is 0,
// `first_word` says where to look for bits.
//
// Each program thread has one (in its Client), so that what one thread gets shares no cache line with what another
// gets; all are the support core's to run. Synchronization: each has a lock, held by the support thread or by a program
// thread that does its work.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/slab_life.h"
#include "core/slab_record.h"
#include "core/swept.h"
#include "os/lock.h"
#include "support/batch.h"

namespace annex::support {

class SegregatedHeap {
 public:
  os::Lock lock;
  Swept swept;

  // With the lock held: between 1 and `most` blocks of the class, all of one slab; none where memory is exhausted.
  Batch take(SizeClass c, uint32_t most);
  // One block, for a caller that has the heap to itself: a free one of the class's current slab, or nullptr; or one
  // from any slab.
  void* take_one(SizeClass c) {
    Slab* const slab = life_.current(c);
    return slab != nullptr && Bits::has_free(slab) ? take_bit(slab) : nullptr;
  }
  void* take_or_carve(SizeClass c);
  // With the lock held: gives back the current slabs that are empty.
  void flush();
  // With the lock held, after flush(): gives back pages of slabs in which no block is out (core/holes.h), until it is
  // to stop; the bytes.
  size_t make_holes(const os::Stop& stop);
  // With the lock held: the size of the class's slabs.
  size_t bytes(SizeClass c) const { return slabs_[c] * slab_granules(c) * kGranule; }

  // How often something has been taken or put back so far, about.
  uint32_t changes() const { return changes_.load(std::memory_order_seq_cst); }

  // Puts blocks back into the heaps that they are from, whose locks it takes, one at a time. Spans among them are
  // freed. Ends the process where one is no block that is out.
  static void put_back(void* const* blocks, uint32_t count);
  // The same of one block, for a caller that has the heap to itself. False, and nothing is done, unless the block is of
  // a slab of one granule in the first arena.
  bool put_one(void* block);
  // Whether a block of the slab is not out. (Who asks of a block that is out needs no lock.)
  static bool is_free(const Slab* slab, const void* block);

 private:
  // Free blocks are bits.
  struct Bits {
    static bool has_free(const Slab* slab) { return slab->countdown < usable_of(slab); }
    static void becomes_full(Slab*) {}
  };

  // Of a slab that has free blocks: the first word of its bitmap that has any, and the first of them.
  static uint32_t first_word(Slab* slab) {
    uint32_t at = slab->first_word;
    while (slab->bitmap[at] == 0) ++at;
    slab->first_word = static_cast<uint16_t>(at);
    return at;
  }
  static void* take_bit(Slab* slab) {
    const uint32_t at = first_word(slab);
    const uint64_t word = slab->bitmap[at];
    slab->bitmap[at] = word & (word - 1);
    ++slab->countdown;
    return slab->start + (at * kWord + static_cast<unsigned>(std::countr_zero(word))) * block_size(slab->size_class);
  }

  static Batch take_bits(Slab* slab, uint32_t most);
  // A slab of the class with free blocks, at least so many where there are; nullptr where memory is exhausted.
  Slab* provide(SizeClass c, uint32_t wanted);
  Slab* new_slab(SizeClass c);
  uint32_t put(Slab* slab, void* const* blocks, uint32_t count);
  uint32_t put_many(Slab* slab, void* const* blocks, uint32_t count);
  static size_t make_holes_in(Slab* slab);
  void count_back(Slab* slab, uint32_t came_back);
  void drop(Slab* slab);

  void note_change() { changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  std::atomic<uint32_t> changes_{0};  // written with the lock held
  SlabLife<Bits> life_;
  uint32_t slabs_[kClasses] = {};
};

}  // namespace annex::support
