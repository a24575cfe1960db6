// Solo: the flavour for single-threaded programs (Exgen-Malloc): one heap, no thread-local, no atomic, no owner.
//
// A process that does start a second thread stays correct: from then on every call takes a lock. The change costs the
// fast paths nothing. Before libc lets a second thread run it clears __libc_single_threaded and then allocates the new
// thread's vector of thread-local storage with our calloc; calloc looks at the flag, and closes the fast paths for good
// by taking away what they live on: the free lists become empty, and no pointer lies within `reach`.
// With a C library in which that order is not known to hold (it does in glibc 2.34 to 2.41), or where libc's calloc is
// not ours (the library was loaded late, for its annex_ functions), they are closed from the start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/block.h"
#include "core/heap.h"
#ifdef ANNEX_MARKED
#include "core/marked.h"
#endif

namespace annex::front {

inline constexpr char kName[] = "solo";

struct Solo {
  Heap heap;
  uintptr_t reach = kNowhere;  // of the fast path of release (core/arena.h)
};
extern constinit Solo solo [[gnu::visibility("hidden")]];

[[gnu::noinline]] void* allocate_slow(size_t bytes) noexcept;
[[gnu::noinline]] void release_slow(void* block) noexcept;

template <void* slow(size_t) = allocate_slow>
[[gnu::always_inline]] inline void* allocate(size_t bytes) {
  if (bytes > kTableMax) [[unlikely]]
    return slow(bytes);
#ifdef ANNEX_MARKED
  return allocate_marked<slow>(solo.heap.free, bytes);
#endif
  const SizeClass c = class_of_tiny(bytes);
  Block* block = solo.heap.free[c];
  if (block == nullptr) [[unlikely]]
    return slow(bytes);
  return pop(&solo.heap.free[c]);
}

[[gnu::always_inline]] inline void release(void* address) noexcept {
  const uintptr_t base = solo.reach;
  const size_t index = (reinterpret_cast<uintptr_t>(address) - base) >> kGranuleShift;
  if (index >= kReach >> kGranuleShift) [[unlikely]]
    return release_slow(address);
  Granule* slab = reinterpret_cast<Granule*>(base) + index;
  Block* block = static_cast<Block*>(address);
  if (!own_block_starts_at(slab, reinterpret_cast<uintptr_t>(address) % kGranule)) [[unlikely]]
    return release_slow(address);
  const uintptr_t mark = mark_of(slab->key, address);
  if (block->mark == mark) [[unlikely]]  // it is free
    return release_slow(address);
  block->next = slab->free;
  block->mark = mark;
  slab->free = block;
  if (--slab->until == 0) [[unlikely]]
    solo.heap.settle(slab, slab->floor);
}

}  // namespace annex::front
