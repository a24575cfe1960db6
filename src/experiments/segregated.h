// Segregated: for experiments with a support core (SpeedMalloc sections 4 and 5; NextGen-Malloc 3.1.2), and installed
// nowhere. The support core's heap (support/segregated_heap.h) is called directly, a block at a time: no magazines, no
// thread-local data, no marks. Nothing that malloc or free reads or writes is in a block; what is freed twice is seen
// in the bitmap.
//
// One thread at a time calls it, and it takes no lock: a program of one thread, or a simulated support core, which runs
// the calls of all threads one after the other (sim/guest/offload.h). `annex-lab` refuses it anywhere else.
#pragma once

#include <cstddef>

#include "core/span.h"
#include "front/frontend.h"
#include "pages/granule.h"
#include "support/segregated_heap.h"

namespace annex::experiments {

extern constinit support::SegregatedHeap segregated_heap [[gnu::visibility("hidden")]];

struct Segregated {
  static constexpr char kName[] = "segregated";

  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept;
  [[gnu::noinline]] static void release_slow(void* block) noexcept;
  template <void* slow(size_t) = allocate_slow>
  static void* allocate(size_t bytes);
  template <void elsewhere(void*) = release_slow>
  static void release(void* block) noexcept;
  static void* allocate_zeroed(size_t bytes);
  static void* allocate_aligned(size_t alignment, size_t bytes);
  static front::Found look_up(const void* block);
  static bool resize(Span* span, size_t bytes);
  static void* move(Span* span, size_t bytes) { return move_span(span, bytes); }
  static size_t give_back(bool holes = true);
  static front::HeapCounts count_heaps();
  static SamplePoints** sample_points() { return nullptr; }  // there are no profiles
  static bool is_free_block(const Slab*, const void*) { return false; }
  static void start() {}
  static void hold_locks_for_fork();
  static void after_fork_in_child() {}
};

template <void* slow(size_t)>
[[gnu::always_inline]] inline void* Segregated::allocate(size_t bytes) {
  if (bytes > kTableMax) [[unlikely]]
    return slow(bytes);
  void* const block = segregated_heap.take_one(class_of_tiny(bytes));
  return block != nullptr ? block : slow(bytes);
}

template <void elsewhere(void*)>
[[gnu::always_inline]] inline void Segregated::release(void* block) noexcept {
  if (!segregated_heap.put_one(block)) [[unlikely]]
    elsewhere(block);
}

}  // namespace annex::experiments
