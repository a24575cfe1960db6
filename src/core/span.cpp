// Spans: see span.h.
#include "core/span.h"

#include <algorithm>

#include "core/free_block.h"
#include "core/runs.h"
#include "os/pages.h"

namespace annex {

namespace {

// Below this, the faults on the rest of a huge page that is then no longer one cost more than copying.
constexpr size_t kMoveFrom = kHugePage;

size_t round_to_pages(size_t bytes) { return (bytes + os::page_size() - 1) & ~(os::page_size() - 1); }
size_t granules_for(size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

}  // namespace

void* allocate_span(size_t bytes, size_t alignment, bool* zero) {
  const size_t usable = round_to_pages(bytes);
  const size_t granules = granules_for(usable);
  const size_t alignment_granules = std::max<size_t>(alignment >> kGranuleShift, 1);
  if (granules + 2 * alignment_granules > kLongestRun) return nullptr;
  Granule* head =
      take_span_run(static_cast<uint32_t>(granules), static_cast<uint32_t>(alignment_granules), usable, zero);
  if (head == nullptr) return nullptr;
  void* block = start_of(head);
  // A mark of the block that was here before might be right again when a program copies it away, and back once there is
  // a slab here: rarely, as that has another nonce (core/mark.h), and this makes it never.
  return *zero ? block : unmarked(block);
}

void free_span(Granule* head) { give_span_run(head, false); }

bool resize_span_in_place(Granule* head, size_t bytes) {
  const size_t usable = round_to_pages(bytes);
  return granules_for(usable) <= kLongestRun && resize_span(head, usable);
}

void* move_span(Granule* from, size_t bytes) {
  const size_t usable = round_to_pages(bytes);
  const size_t granules = granules_for(usable);
  if (from->span.bytes < kMoveFrom || from->tail_unmapped || granules <= from->length ||
      granules > kLongestRun - kGranulesPerHugePage)
    return nullptr;
  const uint32_t kept = from->length;
  Granule* to = take_span_run_to_move_into(kept, static_cast<uint32_t>(granules), usable);
  if (to == nullptr) return nullptr;
  // The whole range, not just the usable size: what is left must hold no page.
  if (!os::move_pages(start_of(from), start_of(to), size_t{kept} * kGranule)) {
    free_span(to);
    return nullptr;
  }
  give_span_run(from, true, to);
  return start_of(to);
}

}  // namespace annex
