// Spans: see span.h.
#include "core/span.h"

#include <algorithm>

#include "core/free_block.h"
#include "core/sample_points.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/page_heap.h"
#include "pages/purger.h"

namespace annex {

namespace {

// Below this, the faults on the rest of a huge page that is then no longer one cost more than copying.
constexpr size_t kMoveFrom = kHugePage;

size_t round_to_pages(size_t bytes) { return round_up(bytes, os::page_size()); }

}  // namespace

void* allocate_span(size_t bytes, size_t alignment, bool* zero) {
  const size_t usable = round_to_pages(bytes);
  const size_t granules = granules_for(usable);
  const size_t alignment_granules = std::max<size_t>(alignment >> kGranuleShift, 1);
  if (granules + 2 * alignment_granules > kLongestRun) return nullptr;
  const Run run = page_heap.take({.granules = static_cast<uint32_t>(granules),
                                  .use = Use::kSpan,
                                  .bytes = usable,
                                  .alignment = static_cast<uint32_t>(alignment_granules)});
  if (run.head == nullptr) return nullptr;
  *zero = run.clean;
  void* const block = start_of(run.head);
  // A mark of the block that was here before might be right again when a program copies it away, and back once there is
  // a slab here: rarely, as that has another nonce (core/mark.h), and this makes it never.
  return run.clean ? block : unmarked(block);
}

void free_span(Span* span) {
  end_all_samples(span);
  page_heap.give_span(span);
  wake_purger();
}

bool resize_span_in_place(Span* span, size_t bytes) {
  const size_t usable = round_to_pages(bytes);
  const bool resized = granules_for(usable) <= kLongestRun && page_heap.resize(span, usable);
  wake_purger();
  return resized;
}

void* move_span(Span* from, size_t bytes) {
  const size_t usable = round_to_pages(bytes);
  const size_t granules = granules_for(usable);
  if (from->bytes < kMoveFrom || from->tail_unmapped || granules <= from->length ||
      granules > kLongestRun - kGranulesPerHugePage)
    return nullptr;
  const uint32_t kept = from->length;
  Span* const to = page_heap.take_to_move_into(kept, static_cast<uint32_t>(granules), usable);
  if (to == nullptr) return nullptr;
  // The whole range, not just the usable size: what is left must hold no page.
  if (!os::move_pages(start_of(from), start_of(to), size_t{kept} * kGranule)) {
    free_span(to);
    return nullptr;
  }
  end_all_samples(from);
  page_heap.give_clean_span(from, to);
  return start_of(to);
}

}  // namespace annex
