// The support core's heap: slabs whose free blocks are bits in a bitmap apart, so that neither taking nor returning a
// block touches the block (the segregated layout of SpeedMalloc section 4 and NextGen-Malloc section 3.1.2).
//
// The policy is core/heap.h's: blocks freed into partial slabs first, then those carved out of the current slab a page
// at a time, then a new slab. Blocks come by the handful and in order of address. Every double free of a block that has
// come back is seen here: its bit is set already.
//
// In a slab's Granule: `until` counts the blocks that are out, `floor` is 0, `first_word` says where to look for bits.
//
// Synchronization: the support core's lock.
#pragma once

#include <cstdint>

#include "core/granule.h"
#include "core/slab.h"
#include "support/handful.h"

namespace annex::support {

class SegregatedHeap {
 public:
  // Between 1 and `most` blocks of the class, of which there are more in the slab or not; none where memory is
  // exhausted.
  Handful take(SizeClass c, uint32_t most);

  // Blocks come back (and spans, which are passed on). Ends the process where one is none that is out.
  void put(void* const* blocks, uint32_t count);

  // Lets go of the current slabs that are empty.
  void flush();

 private:
  bool renew(SizeClass c);
  void retire(Granule* slab);
  void settle(Granule* slab, uint32_t came_back);

  Granule* current_[kClasses] = {};
  SlabList partial_[kClasses];
};

}  // namespace annex::support
