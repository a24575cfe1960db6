// A thread's magazines: of each size class, blocks that malloc takes and free brings. The thread's alone, but where it
// sleeps and they are taken from it (take_asleep).
//
// Each has two stacks. malloc pops from one and free pushes to the other, so that neither waits for what the other has
// just stored. When the first has nothing ready, or the second is full, they change places. At most usual_limit blocks
// are ready at a time, the ones freed last, which are still in the caches; those below them wait:
//
//    ready_base                  floor                ready
//    | a block | ... | a block | no block | a block | ... |          malloc takes ready[-1], if that is a block
//
//    returned_base                            returned        limit
//    | a block | ....................... | a block | ........ |      free puts at returned, if that is not the limit
//
// The floor is a slot with no block, at which malloc stops; the block that was there is in `under_floor` meanwhile. In
// front of each stack there is a slot with no block, which is the floor when nothing waits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/slab_record.h"
#include "support/side_tables.h"

namespace annex::support {

// A limit on the blocks of a class in one place: enough blocks that a hand-over costs little for each, and few enough
// bytes that they do not show in the resident set.
constexpr uint32_t bounded(SizeClass c, size_t bytes, uint32_t least, uint32_t most) {
  return std::clamp(static_cast<uint32_t>(bytes / block_size(c)), least, most);
}

// Of each of the two stacks: at first, and where a thread often fills and empties them.
constexpr uint32_t usual_limit(SizeClass c) { return bounded(c, 8192, 1, 64); }
constexpr uint32_t widest_limit(SizeClass c) { return bounded(c, 524288, 2, 8192); }

// How many blocks must have been returned for a change of places: with fewer, the slow path would run too often.
constexpr uint32_t worthwhile(SizeClass c) { return bounded(c, 4096, 1, 16); }

inline constinit void* no_block = nullptr;

struct alignas(64) Magazine {
  void** ready = &no_block + 1;     // top of its stack: ready[-1] is the next block
  void** returned = &no_block + 1;  // top of its stack: where the next block goes
  void** limit = &no_block + 1;     // of returned. A closed magazine has neither blocks nor room
  uint32_t magic = 0;  // of slabs of one granule, by which free knows a block's start (support/side_tables.h); else 0
  bool overflowed = false;  // since it was last empty

  // For the slow paths. A closed one has no floor.
  void** ready_base = &no_block + 1;
  void** returned_base = &no_block + 1;
  void** floor = nullptr;
  void* under_floor = nullptr;

  uint32_t count() const { return static_cast<uint32_t>(ready - ready_base) + count_returned(); }
  uint32_t count_returned() const { return static_cast<uint32_t>(returned - returned_base); }
  uint32_t room() const { return static_cast<uint32_t>(limit - returned_base); }
  bool full() const { return returned == limit; }
  uint32_t count_ready() const { return floor != nullptr ? static_cast<uint32_t>(ready - floor) - 1 : 0; }

  // Puts the block under the floor back into its slot, so that the stack can be read as a whole.
  void lift_floor() {
    if (floor != nullptr) *floor = under_floor;
  }
  // With the floor lifted: the topmost blocks become ready. True where there are any, as of lower_floor and turn_over.
  bool open_window(SizeClass c) {
    const uint32_t count = std::min(static_cast<uint32_t>(ready - ready_base), usual_limit(c));
    set_floor(count);
    return count > 0;
  }
  // The same of so many, which are ready already. Not of a closed one.
  void narrow_window(uint32_t count) {
    lift_floor();
    set_floor(count);
  }
  bool blocks_wait() const { return floor >= ready_base; }
  // Those that waited below the floor become ready.
  bool lower_floor(SizeClass c) {
    lift_floor();
    return open_window(c);
  }
  // The stacks change places.
  bool turn_over(SizeClass c) {
    lift_floor();
    const uint32_t limit_of_both = room();
    std::swap(ready, returned);
    std::swap(ready_base, returned_base);
    limit = returned_base + limit_of_both;
    return open_window(c);
  }
  // For whoever has taken the magazines from a thread that sleeps (front/lease.h). One last step of malloc or free may
  // still come, whenever the thread wakes, or be under way: it takes the first stack's topmost block, having read it
  // long ago, or puts a block on top of the second, and says so last. So the former stays, and nothing is written that
  // such a step reads or writes. All else goes to put_back(blocks, count). `returned_before`: what `returned` was some
  // time after the magazines had been taken, but before a barrier in all threads (os/all_threads.h), so that what it
  // says is there. The slow paths must not be used again before the magazine has been closed.
  template <class PutBack>
  void take_asleep(void** returned_before, PutBack put_back) {
    const auto put = [&](void** from, void** to) { put_back(from, static_cast<uint32_t>(to - from)); };
    void** top = __atomic_load_n(&ready, __ATOMIC_RELAXED);
    void** from = ready_base;
    if (blocks_wait()) {
      put(from, floor);
      put_back(&under_floor, 1);
      from = floor + 1;
    }
    if (top > from && top[-1] != nullptr) --top;
    put(from, top);
    ready_base = top;
    floor = nullptr;
    under_floor = nullptr;
    put(returned_base, returned_before);
    returned_base = returned_before;
  }
  // With the first stack empty: both stacks move to new arrays, `first` and `second`, with room for `wanted` blocks
  // each.
  void move(void** first, void** second, uint32_t wanted) {
    const uint32_t count = count_returned();
    memmove(second, returned_base, count * sizeof(void*));
    ready = ready_base = first;
    floor = first - 1;
    under_floor = nullptr;
    returned_base = second;
    returned = second + count;
    limit = second + wanted;
  }

 private:
  void set_floor(uint32_t count) {
    floor = ready - count - 1;
    under_floor = std::exchange(*floor, nullptr);
  }
};
static_assert(sizeof(Magazine) == kTagStep);

// Where a class's slots begin in an array of all classes' slots.
template <uint32_t limit(SizeClass)>
inline constexpr auto kSlotsFrom = [] {
  std::array<uint32_t, kClasses + 1> from{};
  for (SizeClass c = 0; c < kClasses; ++c) from[c + 1] = from[c] + 1 + limit(c);
  return from;
}();

// Of a class's two wide stacks, each with a slot with no block in front.
constexpr size_t wide_slots_bytes(SizeClass c) { return 2 * (1 + widest_limit(c)) * sizeof(void*); }

// One for each tag of the class map; tag 0's is closed for good.
struct Magazines {
  Magazine all[kClasses + 1];

  Magazine& at_tag(uint32_t tag) { return *reinterpret_cast<Magazine*>(reinterpret_cast<char*>(all) + tag); }
  Magazine& operator[](SizeClass c) { return all[c + 1]; }
  void close(SizeClass c) {
    (*this)[c] = {};
    (*this)[c].magic = slab_magic(c);
  }
};

}  // namespace annex::support
