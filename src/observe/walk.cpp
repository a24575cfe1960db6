// The heap walk: see walk.h.
#include "observe/walk.h"

#include <algorithm>

#include "core/slab_record.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex::observe {

namespace {

// Reads counts that their slab's owner may be changing: a snapshot is what the caller is promised, so this is the one
// place that looks without synchronizing.
[[gnu::no_sanitize_thread]] annex_region describe(const Granule* head) {
  annex_region region = {};
  region.start = start_of(head);
  region.bytes = head->length * kGranule;
  const Slab* const slab = static_cast<const Slab*>(head);
  const Span* const span = static_cast<const Span*>(head);
  switch (head->kind) {
    case Kind::kSlab:
      region.kind = ANNEX_REGION_SLAB;
      region.block_size = block_size(slab->size_class);
      region.blocks = slab_capacity(slab->size_class);
      // As used_of, which the sanitizer watches. While its owner changes the one and then the other, the sum is
      // neither's.
      region.used = std::min<size_t>(static_cast<uint16_t>(slab->used_after + slab->countdown), region.blocks);
      break;
    case Kind::kNoBytes:
      region.kind = ANNEX_REGION_SLAB;
      region.block_size = kMinAlignment;
      region.blocks = region.bytes / kMinAlignment;
      region.used = span->asked;
      break;
    case Kind::kSpan:
      region.kind = ANNEX_REGION_SPAN;
      region.block_size = span->bytes;
      region.blocks = region.used = 1;
      break;
    default:
      region.kind = ANNEX_REGION_FREE;
      // What is being given back, or is out of use, counts as dirty nowhere else either.
      region.dirty = head->kind == Kind::kSpanWaits || is_free(head, FreeState::kDirty);
  }
  return region;
}

}  // namespace

int walk(const Locked& lock, int (*visit)(const annex_region* region, void* context), void* context) {
  return PageHeap::walk(lock, [=](const Granule* head) {
    const annex_region region = describe(head);
    return visit(&region, context);
  });
}

}  // namespace annex::observe
