// A heap whose owner can have it taken while it sleeps: the lease is the library's (src/front/lease.h), the heap a
// small one of a single class, with six blocks of a slab. It sees when a block is handed out twice or lost, when a page
// goes back in which a block is in use, and when two threads are in the heap at once.
//
// What src/front/thread_heap.cpp, src/core/heap.cpp and holes.cpp do with the heap is done here under their names, in
// the steps in which they read and write what two threads may race for. Simpler than there:
//
//   slow paths    are one step each as far as the heap's lists go, once they have the heap
//   pages         are of two blocks: 1 and 2, 3 and 4, 5 and 6. A slab with holes keeps its fast path, and is not let
//                 go of where it is empty
//   stopping      whoever takes the heap may stop between two slabs, and here there is one
//   remote frees  there are none
#pragma once

#include <string>
#include <vector>

#include "unit/remote/scheduler.h"

namespace annex::test {

// What a thread does, one thing after the other.
//
//   "malloc", "free"  free: the lowest block that it has
//   "settle"          a slow path that changes nothing
//   "jump"            the same, but it never ends: the program has left it by siglongjmp
//   "leave", "start"  leaves the heap to the pool; takes it from there
//   "vanish"          ends without a word, by the system call alone; its variables are gone then
//   "take"            another thread's: takes the heap from its owner, and makes holes
using LeaseProgram = std::vector<std::string>;

// Faults in what is done here in the library's place.
enum class LeaseFault {
  kNone,
  kTakesTheFirstToo,         // of the list that is ready, also the first block
  kDoesNotLookAgain,         // whether the first block is still the first
  kOverwritesWhatIsFreed,    // the slab's list is detached by a store, not by compare-and-swap
  kLeavesTheListAsItIs,      // the slab's list is not detached
  kCounts,                   // what it takes from the ready list, although the countdown is the owner's
  kLinksTooLate,             // free: the block is first of the slab's list before it leads to the next one
  kMarksTooEarly,            // malloc: the block is marked as one in use while it is still first of the list
  kForgetsTheLateFree,       // the owner that comes back does not look at the slab's list
  kForgetsTheLateMalloc,     // nor whether the first block of the ready one is still there
  kLeavesWithoutTheLock,     // a thread that ends
  kLeavesWithoutEntering,    // the same
  kGoesOnWithoutTheBarrier,  // where the kernel has none
};

struct LeasePlan {
  std::string ready;                   // the blocks that malloc pops, at the start: the first one first
  std::string freed;                   // what has been freed of the slab; the first thread has the others
  std::vector<LeaseProgram> programs;  // one a thread; the heap is the first one's
  bool counts_first = false;           // free: counts the block before it puts it into the list, as compilers may
  bool has_barrier = true;             // the kernel
  LeaseFault fault = LeaseFault::kNone;
};

Scheduler::Scenario* make_lease_world(const LeasePlan& plan);

}  // namespace annex::test
