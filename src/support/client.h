// A client: one program thread, as its support thread deals with it. Three kinds of lines that never mix: those that
// only the program writes, those that only the support core writes (or the thread in its stead), and the slots in
// between, which are written once by one side and read once by the other.
//
//   magazines   the program's alone: per class, the blocks that malloc takes from and free puts into; larger where the
//               program frees and allocates in turns
//   at hand     the program's alone: per class, a handful that it has begun to spread out into the magazine
//   stash       per class, handfuls that the support core has set aside for this thread, ahead of demand
//   freed       a ring of blocks on their way back
//   mailbox     a request that wants an answer (large blocks; every call, under the handshake protocol)
//   queue       requests for blocks and their answers, under the queue protocol
//
// What flows through stash and freed is the net flow only: what a thread frees it allocates again from its magazines,
// while it is still in its caches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/heap.h"
#include "support/books.h"
#include "support/handful.h"
#include "support/mailbox.h"
#include "support/request_queue.h"
#include "support/ring.h"
#include "support/segregated_heap.h"
#include "support/stash.h"

namespace annex::support {

class SupportThread;

// How much of a class is kept in one place at most: enough blocks that a hand-over costs little for each, and few
// enough bytes that what lies there does not show in the resident set.
constexpr uint32_t bounded(SizeClass c, size_t bytes, uint32_t least, uint32_t most) {
  return std::clamp(static_cast<uint32_t>(bytes / block_size(c)), least, most);
}

// Of a magazine whose blocks flow one way, and of one where they go back and forth.
constexpr uint32_t usual_limit(SizeClass c) { return bounded(c, 16384, 2, 64); }
constexpr uint32_t widest_limit(SizeClass c) { return bounded(c, 1048576, 4, 16384); }

inline constinit void* no_block = nullptr;

// Blocks of one class, the last one in first out: [base, top) of room for [base, limit). base[-1] is no block, by which
// malloc sees that the magazine is empty. A closed one has no room.
struct Magazine {
  void** top = &no_block + 1;
  void** limit = &no_block + 1;
  void** base = &no_block + 1;
  uint32_t magic = 0;       // of slabs of one granule, by which free knows a block's start (core/granule.h); else 0
  bool overflowed = false;  // since it was last empty

  uint32_t count() const { return static_cast<uint32_t>(top - base); }
  uint32_t room() const { return static_cast<uint32_t>(limit - base); }
};

// Where a class's slots begin in Client::slots and, for a magazine that has become wide, in Client::wide_slots. The
// usual ones stand close together: a small program's take a few pages.
template <uint32_t limit(SizeClass)>
inline constexpr auto kSlotsFrom = [] {
  std::array<uint32_t, kClasses + 1> from{};
  for (SizeClass c = 0; c < kClasses; ++c) from[c + 1] = from[c] + 1 + limit(c);
  return from;
}();

inline constexpr uint32_t kFreedSlots = 1024;

// By the class map's mark, so that free need not subtract; mark 0 has none that free would use. The program's alone. A
// base, so that a thread's magazines lead to its client.
struct Magazines {
  Magazine by_mark[kClasses + 1];

  Magazine& operator[](SizeClass c) { return by_mark[mark_of(c)]; }
  void close(SizeClass c) {
    (*this)[c] = {};
    (*this)[c].magic = slab_magic(c);
  }
};
static_assert(sizeof(Magazine) == 32);

struct Client : Magazines {
  // Between the two.
  Stash stash;
  Ring<void*, kFreedSlots> freed;
  Mailbox mailbox;
  RequestQueue queue;
  alignas(64) std::atomic<uint32_t> activity{0};  // the program: one more for each use of stash or freed

  // The program's alone.
  alignas(64) Handful at_hand[kClasses] = {};  // what is left of the handful that it took last
  size_t widened = 0;                          // bytes that its magazines may hold more than usual
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

  alignas(64) void* slots[kSlotsFrom<usual_limit>[kClasses]];  // of the magazines
  void* wide_slots[kSlotsFrom<widest_limit>[kClasses]];        // and those of wide ones

  void stir() { activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};

}  // namespace annex::support
