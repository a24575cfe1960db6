// The support core's heap: slabs whose free blocks are bits in a bitmap apart, so that neither taking nor returning a
// block touches the block (the segregated layout of SpeedMalloc section 4 and NextGen-Malloc section 3.1.2).
//
// The policy is core/heap.h's: blocks freed into partial slabs first, then those carved out of the current slab a page
// at a time, then a new slab. Blocks come by the batch and in order of address. Every double free of a block that has
// come back is seen here: its bit is set already.
//
// In a slab's Granule: `heap` is the heap, `countdown` the number of blocks that are out, `used_after` is 0,
// `first_word` says where to look for bits.
//
// Each program thread has one (in its Client), so that what one thread gets shares no cache line with what another
// gets; all are the support core's to run. Synchronization: each has a lock, held by the support thread or by a program
// thread that does its work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/granule.h"
#include "core/slab_life.h"
#include "os/lock.h"
#include "support/batch.h"

namespace annex::support {

class SegregatedHeap {
 public:
  os::Lock lock;

  // With the lock held: between 1 and `most` blocks of the class, of which there are more in the slab or not; none
  // where memory is exhausted.
  Batch take(SizeClass c, uint32_t most);
  // With the lock held: lets go of the current slabs that are empty.
  void flush();
  // With the lock held: of the class's slabs.
  size_t bytes(SizeClass c) const { return slabs_[c] * slab_granules(c) * kGranule; }

  // Blocks come back to whatever heaps they are from, whose locks it takes, one at a time (and spans, which are passed
  // on). Ends the process where one is none that is out.
  static void put_back(void* const* blocks, uint32_t count);

 private:
  // Free blocks are bits.
  struct Bits {
    static bool has_free(const Granule* slab) { return slab->countdown < slab->carved; }
    static void becomes_full(Granule*) {}
  };

  Granule* new_slab(SizeClass c);
  uint32_t put(Granule* slab, void* const* blocks, uint32_t count);
  uint32_t put_many(Granule* slab, void* const* blocks, uint32_t count);
  void settle(Granule* slab, uint32_t came_back);
  void drop(Granule* slab);

  SlabLife<Bits> life_;
  uint32_t slabs_[kClasses] = {};
};

}  // namespace annex::support
