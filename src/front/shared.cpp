// Shared: see shared.h.
#include "front/shared.h"

#include <cstring>

#include "front/request.h"
#include "os/all_threads.h"
#include "pages/page_heap.h"
#include "pages/purger.h"

namespace annex::front {

namespace {

void* allocate_from(ThreadHeap* heap, SizeClass c) {
  if (heap->free[c] == nullptr && !heap->inbox.empty()) heap->take_in_some();
  Policy::MallocSteps::drop(c);
  Block* block = heap->free[c];
  if (block == nullptr) {
    block = heap->refill(c);
    if (block == nullptr) return out_of_memory();
    heap->free[c] = block;
  }
  return pop(&heap->free[c]);
}

// What the fast path would have found, if it weren't for the class; nullptr where that is nothing.
void* take_at_hand(ThreadHeap* heap, SizeClass c) {
  Block** const list = &heap->free[c];
  if (*list != nullptr) return pop(list);
  Block* const block = heap->take_freed(c);
  if (block == nullptr) return nullptr;
  *list = next_of(block);
  return unmarked(block);
}

// The thread's first block (not cold: each process has one); or one of a thread that can't have a heap of its own, from
// one of the pool.
[[gnu::noinline]] void* allocate_without_heap(SizeClass c) {
  if (start_thread()) {
    const OwnHeap self;
    return allocate_from(self.get(), c);
  }
  ThreadHeap* heap = page_heap.set_up() ? take_heap() : nullptr;
  if (heap == nullptr) return out_of_memory();
  void* block = allocate_from(heap, c);
  // Not written down, as the heap is not the thread's; nor for the next thread that has it.
  if (heap->points != nullptr) heap->points->take(block);
  put_heap(heap);
  return block;
}

// nullptr where memory is exhausted.
[[gnu::always_inline]] inline void* allocate_from_own(SizeClass c) {
  const OwnHeap self;
  if (!self) [[unlikely]]
    return allocate_without_heap(c);
  void* const block = take_at_hand(self.get(), c);
  return block != nullptr ? block : allocate_from(self.get(), c);
}

[[gnu::noinline]] void* allocate_small(SizeClass c) {
  void* const block = allocate_from_own(c);
  start_wanted_purger();
  return block;
}

}  // namespace

void* Shared::allocate_slow(size_t bytes) noexcept {
  if (bytes > kMaxSmall) [[unlikely]]
    return allocate_large(bytes, kMinAlignment);
  const SizeClass c = class_of(bytes);
  Policy::MallocSteps::drop(c);
  return allocate_small(c);
}

void* Shared::allocate_zeroed(size_t bytes) {
  if (bytes > kMaxSmall) return allocate_large_zeroed(bytes);
  void* block = allocate(bytes);
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* Shared::allocate_aligned(size_t alignment, size_t bytes) {
  const SizeClass c = aligned_class(alignment, bytes);
  return c < kClasses ? allocate_small(c) : allocate_large(bytes, alignment);
}

void Shared::release_slow(void* address) noexcept {
  if (address == nullptr) return;
  Granule* const head = live_block_or_die(address);
  if (Span* span = as_span(head)) return free_span(span);
  Slab* const slab = static_cast<Slab*>(head);
  Block* const block = static_cast<Block*>(address);
  if (slab->owner != own_heap) return release_remote(slab, block);
  const OwnHeap self;
  self->put_back(slab, block);
}

void Shared::settle(Slab* slab) noexcept {
  const OwnHeap self;
  self->settle(slab, slab->used_after);
}

// In reach, and not known to be the thread's own by the granule's key: its heap may have been taken. A thread without a
// heap has no open batch (no_heap).
void Shared::release_foreign(void* address, Slab* slab, uint64_t key) noexcept {
  Block* const block = static_cast<Block*>(address);
  if (!block_starts_at(slab, reinterpret_cast<uintptr_t>(address) % kGranule) || is_marked(key, block)) [[unlikely]]
    return release_slow(address);
  ThreadHeap* const heap = own_heap_now();
  if (!heap->outbox.add_to_open(slab, block)) [[unlikely]]
    return slab->owner == heap ? release_slow(address) : release_remote(slab, block);
  mark_free(key, block);
}

[[gnu::cold]] size_t Shared::give_back(bool holes) {
  size_t bytes = 0;
  if (const OwnHeap self; self) {
    self->send();
    self->take_in();
    self->flush();
    if (holes) bytes += self->make_holes({});
  }
  return page_heap.trim(bytes + give_back_of_others(holes));
}

Found Shared::look_up(const void* block) { return find(block); }
bool Shared::resize(Span* span, size_t bytes) { return resize_span_in_place(span, bytes); }

[[gnu::cold]] bool Shared::is_free_block(const Slab* slab, const void* block) {
  const os::UnseenBySanitizer unseen;
  return block_is_free(slab, slab->key, block);
}

HeapCounts Shared::count_heaps() {
  HeapCounts counts;
  for (const ThreadHeap* heap = first_of_all_heaps(); heap != nullptr; heap = heap->next_of_all) {
    ++counts.heaps;
    counts.refills += heap->refills.value();
    counts.remote_batches += heap->batches.value();
  }
  return counts;
}

void Shared::hold_locks_for_fork() { hold_heap_locks_for_fork(); }
void Shared::after_fork_in_child() { heaps_after_fork_in_child(); }

}  // namespace annex::front
