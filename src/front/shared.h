// Shared: the flavour for any program. A heap per thread; a slab belongs to one heap. What a thread frees of its own
// touches no atomic; what belongs to another heap is sent there (thread_heap.h, remote/).
//
// Thread-local storage: 20 bytes, initial-exec, so that the library can be dlopened.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/allocate.h"
#include "core/block.h"
#include "core/release.h"
#include "core/span.h"
#include "front/frontend.h"
#include "front/thread_heap.h"
#include "pages/arena.h"
#include "policy/policy.h"

namespace annex::front {

struct Shared {
  static constexpr char kName[] = "shared";

  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept;
  [[gnu::noinline]] static void release_slow(void* block) noexcept;
  [[gnu::noinline]] static void release_foreign(void* block, Slab* slab, uint64_t key) noexcept;
  // The slab's countdown has ended, of a heap of the thread's own.
  [[gnu::noinline]] static void settle(Slab* slab) noexcept;
  template <void* slow(size_t) = allocate_slow>
  static void* allocate(size_t bytes);
  template <void elsewhere(void*) = release_slow>
  static void release(void* block) noexcept;
  static void* allocate_zeroed(size_t bytes);
  static void* allocate_aligned(size_t alignment, size_t bytes);
  static Found look_up(const void* block);
  static bool resize(Span* span, size_t bytes);
  static void* move(Span* span, size_t bytes) { return move_span(span, bytes); }
  static size_t give_back(bool holes = true);
  static HeapCounts count_heaps();
  static SamplePoints** sample_points() { return own_heap != &no_heap ? &own_heap->points : nullptr; }
  static bool is_free_block(const Slab* slab, const void* block);
  static void start() {}
  static void hold_locks_for_fork();
  static void after_fork_in_child();
};

template <void* slow(size_t)>
[[gnu::always_inline]] inline void* Shared::allocate(size_t bytes) {
  return allocate_from<slow>(thread_heap->free, bytes);
}

template <void elsewhere(void*)>
[[gnu::always_inline]] inline void Shared::release(void* address) noexcept {
  release_within<release_slow, elsewhere>(
      primary.start, address, [](uint64_t key) { return owner_in(key) == thread_number; },
      [address](Slab* slab, uint64_t key) { release_foreign(address, slab, key); }, settle);
}

}  // namespace annex::front
