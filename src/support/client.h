// A client: one program thread, as its support thread deals with it. Three kinds of lines that never mix: those that
// only the program writes, those that only the support core writes (or the thread in its stead), and the slots in
// between, which are written once by one side and read once by the other.
//
//   magazines   the program's alone: per class, the blocks that malloc takes and free brings (support/magazine.h)
//   stash       per class, batches that the support core has set aside for this thread, ahead of demand
//   freed       a ring of blocks on their way back
//   mailbox     a request that wants an answer (large blocks; every call, under the handshake protocol)
//   queue       requests for blocks and their answers, under the queue protocol
//
// What flows through stash and freed is the net flow only: what a thread frees it allocates again from its magazines,
// while it is still in its caches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/heap.h"
#include "support/batch.h"
#include "support/magazine.h"
#include "support/mailbox.h"
#include "support/request_queue.h"
#include "support/ring.h"
#include "support/segregated_heap.h"
#include "support/stash.h"

namespace annex::support {

class SupportThread;

inline constexpr uint32_t kFreedSlots = 1024;

// Its magazines are a base, so that they lead to it.
struct Client : Magazines {
  // Between the two.
  Stash stash;
  Ring<void*, kFreedSlots> freed;
  Mailbox mailbox;
  RequestQueue queue;
  alignas(64) std::atomic<uint32_t> activity{0};  // the program: one more for each use of stash or freed

  // The program's alone.
  alignas(64) size_t widened = 0;  // bytes that its magazines may hold more than usual
  Batch rest[kClasses] = {};       // of the batch that it took last, what is not in the magazine yet
  uint32_t activities = 0;         // activity, which a store leaves where it is and a load would have to fetch back
  uint32_t bypass = 0;  // hand-overs for which the thread does without the support core, which is slower than it

  // The support core's, or of whoever holds the heap's lock in its stead.
  alignas(64) SegregatedHeap heap;  // where the thread's blocks are from
  uint16_t target[kClasses] = {};   // how full the stash is kept
  Counter helped;                   // times that the thread took blocks itself

  // The support thread's; of two while the client passes from one to the other.
  std::atomic<uint32_t> activity_seen = 0;
  std::atomic<uint32_t> activity_looked = 0;  // when it last asked whether its CPU is free

  // Read by all, seldom written.
  alignas(64) std::atomic<SupportThread*> served_by = nullptr;  // nullptr: not yet placed (support/placement.h)
  Client* next_pooled = nullptr;                                // under the support core's lock
  Client* next_of_all = nullptr;                                // constant once published

  // Of the magazines' two stacks. They stand close together: a small program's take a few pages.
  alignas(64) void* slots[2][kSlotsFrom<usual_limit>[kClasses]];
  // Of a class's wide ones, mapped when the thread first widens it: for all classes they take 1.5 MiB.
  void** wide_slots[kClasses];

  void note_activity() { activity.store(++activities, std::memory_order_release); }
};

}  // namespace annex::support
