// Spans: see span.h.
#include "core/span.h"

#include <algorithm>
#include <atomic>

#include "core/arena.h"
#include "os/pages.h"

namespace annex {

namespace {

// Below this, the faults on the rest of a huge page that is then no longer one cost more than copying.
constexpr size_t kMoveFrom = kHugePage;
// Each move can leave a mapping of its own, and a process may have 65,530 of them.
constexpr uint32_t kMostMoves = 16384;
std::atomic<uint32_t> moves{0};

size_t round_to_pages(size_t bytes) { return (bytes + os::page_size() - 1) & ~(os::page_size() - 1); }
size_t granules_for(size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

}  // namespace

void* allocate_span(size_t bytes, size_t alignment, bool* zero) {
  const size_t usable = round_to_pages(bytes);
  const size_t granules = granules_for(usable);
  const size_t alignment_granules = std::max<size_t>(alignment >> kGranuleShift, 1);
  if (granules + alignment_granules > kLongestRun) return nullptr;
  Granule* head =
      take_span_run(static_cast<uint32_t>(granules), static_cast<uint32_t>(alignment_granules), usable, zero);
  if (head == nullptr) return nullptr;
  Block* block = reinterpret_cast<Block*>(start_of(head));
  // A mark of the block that was here before might be right again when a program copies it away, and back once there is
  // a slab here: rarely, as that has another nonce (core/mark.h), and this makes it never.
  if (!*zero) block->mark = 0;
  return block;
}

void free_span(Granule* head) { give_run(head, head->length, Purpose::kSpan, false); }

bool resize_span_in_place(Granule* head, size_t bytes) {
  const size_t usable = round_to_pages(bytes);
  return granules_for(usable) <= kLongestRun && resize_span(head, usable);
}

bool move_span(Granule* from, Granule* to) {
  if (from->bytes < kMoveFrom || to->length < from->length) return false;
  if (moves.load(std::memory_order_relaxed) >= kMostMoves) return false;
  moves.fetch_add(1, std::memory_order_relaxed);
  // The whole range, not just the usable size: what is left must hold no page.
  if (!os::move_pages(start_of(from), start_of(to), size_t{from->length} * kGranule)) return false;
  give_run(from, from->length, Purpose::kSpan, true);
  return true;
}

}  // namespace annex
