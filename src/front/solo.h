// Solo: the flavour for single-threaded programs (Exgen-Malloc): one heap, no thread-local, no atomic, no owner.
//
// A process that does start a second thread goes on as under the shared flavour, whose first heap this one is: the
// thread that was alone keeps it, and every call passes through here to shared.h. The change costs the fast paths
// nothing. Before libc lets a second thread run it clears __libc_single_threaded and then allocates the new thread's
// vector of thread-local storage with our calloc; calloc looks at the flag, and closes the fast paths for good by
// taking away what they live on: the free lists move to the heap, and no pointer lies behind `start`. With a C library
// in which that order is not known to hold (it does in glibc 2.34 to 2.43), or where libc's calloc is not ours (the
// library was loaded late, for its annex_ functions), they are closed from the start; ANNEX_VERBOSE=1 says so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/allocate.h"
#include "core/block.h"
#include "core/heap.h"
#include "core/release.h"
#include "front/shared.h"
#include "pages/arena.h"

namespace annex::front {

struct Alone {
  Block* free[kClasses] = {};  // the heap's lists
  uintptr_t start = kNowhere;  // of the fast path of release: primary.start (pages/arena.h)
  Heap* heap = nullptr;        // once set up
  bool over = false;           // there is a second thread, or one can't be noticed
};
extern constinit Alone alone [[gnu::visibility("hidden")]];

struct Solo : Shared {
  static constexpr char kName[] = "solo";

  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept;
  [[gnu::noinline]] static void release_slow(void* block) noexcept;
  template <void* slow(size_t) = allocate_slow>
  static void* allocate(size_t bytes);
  template <void elsewhere(void*) = release_slow>
  static void release(void* block) noexcept;
  static void* allocate_zeroed(size_t bytes);
  static void* allocate_aligned(size_t alignment, size_t bytes);
  static size_t give_back(bool holes = true);
  static SamplePoints** sample_points() {
    return alone.heap != nullptr && !alone.over ? &alone.heap->points : Shared::sample_points();
  }
  static void start();
};

template <void* slow(size_t)>
[[gnu::always_inline]] inline void* Solo::allocate(size_t bytes) {
  return allocate_from<slow>(alone.free, bytes);
}

template <void elsewhere(void*)>
[[gnu::always_inline]] inline void Solo::release(void* address) noexcept {
  release_within<release_slow, elsewhere>(
      alone.start, address, [](uint64_t) { return true; }, [](Slab*, uint64_t) {},
      [](Slab* slab) { alone.heap->settle(slab, slab->used_after); });
}

}  // namespace annex::front
