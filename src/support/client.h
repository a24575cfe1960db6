// A client: one program thread, as its support thread sees it. Three kinds of data are on cache lines of their own:
// what only the program thread writes, what only the support core writes (or the program thread in its place), and the
// slots between the two, which are written once by one side and read once by the other.
//
//   magazines   the program's: per class, the blocks that malloc takes and free brings (support/magazine.h)
//   stash       per class, batches that the support core has set aside for this thread, ahead of demand
//   freed       a ring of blocks on their way back
//   mailbox     a request that wants an answer (large blocks; every call, under the handshake protocol)
//   queue       requests for blocks and their answers, under the queue protocol
//
// Only what a thread allocates and frees on balance passes through stash and freed: a block that it frees it allocates
// again from its magazines, while the block is still in its core's caches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/heap.h"
#include "os/lock.h"
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
  alignas(64) std::atomic<uint32_t> activity{0};  // written by the program: uses of stash or freed so far

  // The program's alone.
  alignas(64) size_t widened = 0;  // bytes that its magazines may hold more than usual
  Batch rest[kClasses] = {};       // what is not in the magazine yet of the batch that it took last
  uint32_t activities = 0;  // the same as activity, whose line the support core reads: no load has to fetch it back
  uint32_t bypass = 0;      // for so many hand-overs it does without the support core, which was slower than it

  // The support core's, or of whoever holds the heap's lock in its stead.
  alignas(64) SegregatedHeap heap;  // where the thread's blocks are from
  uint16_t target[kClasses] = {};   // how many blocks are to be in the stash
  Counter helped;                   // times that the thread took blocks itself

  // The support thread's; atomic, since two may use it while the client passes from one to the other.
  std::atomic<uint32_t> activity_seen = 0;
  std::atomic<uint32_t> activity_looked = 0;  // when it last asked whether its CPU is free

  // Read by all, seldom written.
  alignas(64) std::atomic<SupportThread*> served_by = nullptr;  // nullptr: not yet placed (support/placement.h)
  Client* next_pooled = nullptr;                                // under the support core's lock
  Client* next_of_all = nullptr;                                // constant once published
  os::Lock lease_lock;  // of who has the client, its thread or whoever took it from that (front/thread_client.h)

  void note_activity() { activity.store(++activities, std::memory_order_release); }
};

}  // namespace annex::support
