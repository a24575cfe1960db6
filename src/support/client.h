// A client: one program thread, as the support core deals with it. Three kinds of lines that never mix: those that only
// the program writes, those that only the support core writes (or the thread in its stead), and the slots
// in between, which are written once by one side and read once by the other.
//
//   magazines   the program's alone: per class, the blocks that malloc takes from and free puts into; larger where the
//               program frees and allocates in turns
//   stash       per class, a ring of handfuls that the support core has set aside for this thread, ahead of demand
//   freed       a ring of blocks on their way back
//   mailbox     a request that wants an answer (large blocks; every call, under the paper's protocols)
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
#include "support/handful.h"
#include "support/mailbox.h"
#include "support/ring.h"
#include "support/segregated_heap.h"

namespace annex::support {

// How much of a class is kept in one place at most: enough blocks that a hand-over costs little for each, and few
// enough bytes that what lies there does not show in the resident set.
constexpr uint32_t bounded(SizeClass c, size_t bytes, uint32_t least, uint32_t most) {
  return std::clamp(static_cast<uint32_t>(bytes / block_size(c)), least, most);
}

// Of a magazine whose blocks flow one way, and of one where they go back and forth.
constexpr uint32_t usual_limit(SizeClass c) { return bounded(c, 16384, 2, 64); }
constexpr uint32_t widest_limit(SizeClass c) { return bounded(c, 262144, 4, 4096); }

// Blocks of one class, the last one in first out: [base, top) of room for [base, limit). A thread without a client has
// magazines that are empty and full at once. base[-1] is null: no block.
struct Magazine {
  void** top = nullptr;
  void** base = nullptr;
  void** limit = nullptr;
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

inline constexpr uint32_t kStashSlots = 32;  // handfuls
constexpr uint32_t stash_limit(SizeClass c) {
  return std::clamp(static_cast<uint32_t>(131072 / (handful_of(c) * block_size(c))), 2u, kStashSlots);
}

class Stash {
 public:
  // The program: a handful, empty where there is none.
  Handful take(SizeClass c) {
    const uint32_t from = taken_[c].load(std::memory_order_relaxed);
    if (put_[c].load(std::memory_order_acquire) == from) return {};
    const Handful handful = slots_[c][from % kStashSlots];
    taken_[c].store(from + 1, std::memory_order_release);
    return handful;
  }

  // The support core: how many handfuls lie there, and how many have ever been taken.
  uint32_t taken(SizeClass c) const { return taken_[c].load(std::memory_order_acquire); }
  uint32_t level(SizeClass c) const { return put_[c].load(std::memory_order_relaxed) - taken(c); }
  // The caller has seen that there is room.
  void put(SizeClass c, const Handful& handful) {
    const uint32_t at = put_[c].load(std::memory_order_relaxed);
    slots_[c][at % kStashSlots] = handful;
    put_[c].store(at + 1, std::memory_order_release);
  }

 private:
  alignas(64) std::atomic<uint32_t> taken_[kClasses] = {};
  alignas(64) std::atomic<uint32_t> put_[kClasses] = {};
  alignas(64) Handful slots_[kClasses][kStashSlots] = {};
};

inline constexpr uint32_t kFreedSlots = 1024;

// The program's alone. A base, so that a thread's magazines lead to its client.
struct Magazines {
  Magazine magazines[kClasses];
};
static_assert(sizeof(Magazines) == sizeof(Magazine[kClasses]));

struct Client : Magazines {
  // Between the two.
  Stash stash;
  Ring<void*, kFreedSlots> freed;
  Mailbox mailbox;
  alignas(64) std::atomic<uint32_t> activity{0};  // the program: one more for each use of stash or freed

  // The program's alone.
  uint32_t bypass = 0;  // hand-overs for which the thread does without the support core, which is slower than it

  // The support core's, or of whoever holds the heap's lock in its stead.
  alignas(64) SegregatedHeap heap;  // where the thread's blocks are from
  uint16_t target[kClasses] = {};   // how full the stash is kept
  uint32_t taken_seen[kClasses] = {};
  Counter helped;  // times that the thread took blocks itself

  // The support thread's alone.
  uint32_t activity_seen = 0;
  uint32_t activity_looked = 0;  // when it last asked whether its CPU is free

  Client* next_pooled = nullptr;  // under the support core's lock
  Client* next_of_all = nullptr;  // constant once published

  void* slots[kSlotsFrom<usual_limit>[kClasses]];        // of the magazines
  void* wide_slots[kSlotsFrom<widest_limit>[kClasses]];  // and those of wide ones

  void stir() { activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};

}  // namespace annex::support
