// Segregated: see segregated.h.
#include "experiments/segregated.h"

#include <cstring>

#include "core/block.h"
#include "core/die.h"
#include "core/span.h"
#include "front/request.h"
#include "os/fork.h"
#include "pages/page_heap.h"
#include "support/side_tables.h"

namespace annex::experiments {

using namespace front;

constinit support::SegregatedHeap segregated_heap;

namespace {

// The arena's side tables are made with its first part.
bool ready() {
  commit_side_tables = support::commit;
  return page_heap.set_up();
}

void* allocate_small(SizeClass c) {
  void* const block = ready() ? segregated_heap.take_or_carve(c) : nullptr;
  return block != nullptr ? block : out_of_memory();
}

// The head of a block that is in use.
Granule* live_or_die(const void* block) {
  Granule* const head = block_or_die(block);
  const Slab* const slab = as_slab(head);
  if (slab != nullptr && support::SegregatedHeap::is_free(slab, block)) die(kFreedTwice, block, head);
  return head;
}

}  // namespace

void* Segregated::allocate_slow(size_t bytes) noexcept {
  if (bytes <= kMaxSmall) return allocate_small(class_of(bytes));
  return ready() ? allocate_large(bytes, kMinAlignment) : out_of_memory();
}

void Segregated::release_slow(void* block) noexcept {
  if (block != nullptr) support::SegregatedHeap::put_back(&block, 1);
}

void* Segregated::allocate_zeroed(size_t bytes) {
  if (bytes > kMaxSmall) return ready() ? allocate_large_zeroed(bytes) : out_of_memory();
  void* const block = allocate(bytes);
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* Segregated::allocate_aligned(size_t alignment, size_t bytes) {
  const SizeClass c = aligned_class(alignment, bytes);
  if (c < kClasses) return allocate_small(c);
  return ready() ? allocate_large(bytes, alignment) : out_of_memory();
}

Found Segregated::look_up(const void* block) {
  Granule* const head = live_or_die(block);
  return {usable_size(head), as_span(head)};
}

bool Segregated::resize(Span* span, size_t bytes) { return resize_span_in_place(span, bytes); }

size_t Segregated::give_back(bool) {
  segregated_heap.flush();
  return page_heap.trim();
}

HeapCounts Segregated::count_heaps() { return {.heaps = 1}; }

void Segregated::hold_locks_for_fork() { os::fork.hold(segregated_heap.lock); }

}  // namespace annex::experiments
