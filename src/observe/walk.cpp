// The heap walk: see walk.h.
#include "observe/walk.h"

#include <algorithm>

#include "core/arena.h"

namespace annex::observe {

namespace {

// Reads counts that their slab's owner may be changing: a snapshot is what the caller is promised, so this is the one
// place that looks without synchronizing.
[[gnu::no_sanitize_thread]] annex_region describe(const Arena& arena, const Granule* head, uint32_t* granules) {
  annex_region region = {};
  region.start = arena.start_of(head);
  switch (head->kind) {
    case Kind::kSlab:
      *granules = slab_granules(head->size_class);
      region.kind = ANNEX_REGION_SLAB;
      region.block_size = block_size(head->size_class);
      region.blocks = slab_capacity(head->size_class);
      // As used_of, which the sanitizer watches. While its owner changes the one and then the other, the sum is
      // neither's.
      region.used = std::min<size_t>(static_cast<uint16_t>(head->used_after + head->countdown), region.blocks);
      break;
    case Kind::kNoBytes:
      *granules = head->length;
      region.kind = ANNEX_REGION_SLAB;
      region.block_size = kMinAlignment;
      region.blocks = size_t{head->length} * kGranule / kMinAlignment;
      region.used = head->span.asked;
      break;
    case Kind::kSpan:
      *granules = head->length;
      region.kind = ANNEX_REGION_SPAN;
      region.block_size = head->span.bytes;
      region.blocks = region.used = 1;
      break;
    default:
      *granules = head->length;
      region.kind = ANNEX_REGION_FREE;
      region.dirty = head->kind != Kind::kFree || is_dirty(head);
  }
  region.bytes = size_t{*granules} * kGranule;
  return region;
}

}  // namespace

int walk(int (*visit)(const annex_region* region, void* context), void* context) {
  os::Guard guard(arena_lock);
  return walk_locked(visit, context);
}

int walk_locked(int (*visit)(const annex_region* region, void* context), void* context) {
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Arena& arena = arenas[i];
    uint32_t granules = 0;
    for (const Granule* head = arena.first(); head < arena.frontier(); head += granules) {
      const annex_region region = describe(arena, head, &granules);
      if (const int result = visit(&region, context); result != 0) return result;
    }
  }
  return 0;
}

}  // namespace annex::observe
