// Shared: the flavour for any program. A heap per thread; a slab belongs to one heap. What a thread frees of its own
// touches no atomic; what belongs to another heap is sent there (remote/).
//
// A thread that ends leaves its heap to a pool, from which the next thread takes it, slabs and all. Heaps are never
// destroyed, so that a remote free needs no lock to reach one. A heap in the pool has no thread that would look into
// its inbox: whoever posts to it does so in its stead.
//
// A heap whose thread sleeps can be taken from it, until it comes back (lease.h): then pages in which it keeps nothing
// but free blocks go back to the system.
//
// Thread-local storage: 20 bytes, initial-exec, so that the library can be dlopened.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/allocate.h"
#include "core/block.h"
#include "core/heap.h"
#include "core/release.h"
#include "core/span.h"
#include "front/frontend.h"
#include "front/held.h"
#include "front/lease.h"
#include "pages/arena.h"
#include "policy/policy.h"
#include "remote/inbox.h"
#include "remote/outbox.h"

namespace annex::front {

// Two parts that share no cache line, with each other or with other heaps: what its thread uses, and others only while
// it sleeps, and what others write.
struct alignas(64) ThreadHeap : Heap {
  constexpr ThreadHeap() = default;

  remote::Outbox outbox;                    // empty while the heap is in the pool
  [[no_unique_address]] Policy::Held held;  // the same
  Counter batches;                          // taken in

  Lease<ThreadHeap> lease;

  alignas(64) remote::Inbox inbox;
  ThreadHeap* next_pooled = nullptr;  // under the pool's lock
  ThreadHeap* next_of_all = nullptr;  // constant once published
  // Another number when something has happened to it since.
  uint64_t activity() const { return lease.steps() + batches.value(); }
  // For the purger: the number when it last looked, and whether what the heap keeps has gone back then.
  uint64_t seen = 0;
  bool swept = false;
};

// What a thread without a heap points at: its lists are empty, so that the fast path needs no check.
extern constinit ThreadHeap no_heap [[gnu::visibility("hidden")]];
// The thread's heap, for its fast paths; no_heap where it has none, or that has been taken.
extern constinit thread_local ThreadHeap* thread_heap [[gnu::tls_model("initial-exec")]];
// The same, also while it has been taken.
extern constinit thread_local ThreadHeap* own_heap [[gnu::tls_model("initial-exec")]];
// thread_heap as it is at one moment: another thread may be taking it.
[[gnu::always_inline]] inline ThreadHeap* own_heap_now() { return __atomic_load_n(&thread_heap, __ATOMIC_RELAXED); }
// Its heap's number; kNoNumber where it has no heap, or more heaps have been made than there are numbers.
inline constexpr uint16_t kNoNumber = 0;
extern constinit thread_local uint16_t thread_number [[gnu::tls_model("initial-exec")]];

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
  static void start() {}
  static void hold_locks_for_fork();
  // Heaps of threads that are no more stay as they were, perhaps in the middle of a change: nobody takes them, nor what
  // their outboxes hold. Remote frees to them still work, since those touch only the batch and the inbox.
  static void after_fork_in_child();

  // For a front end that uses the first heap by itself while the process has one thread (solo.h), with free lists of
  // its own: nullptr where a thread has that heap already. keep_first_heap() makes it the calling thread's.
  static Heap* claim_first_heap(Block** lists);
  static void keep_first_heap();
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
