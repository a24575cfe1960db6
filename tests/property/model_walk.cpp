// The shadow of the heap against what Annex says of itself: heap walk and statistics; see model.h.
#include <cstdio>

#include "annex/annex.h"
#include "property/model.h"

namespace annex_test {
namespace {

// Both the regions and the live blocks come in address order, so one pass over both is enough.
struct Merge {
  std::pmr::map<std::uintptr_t, std::uintptr_t>::const_iterator next;
  std::pmr::map<std::uintptr_t, std::uintptr_t>::const_iterator end;
  std::uintptr_t previous_end = 0;
  char failure[256] = "";
};

int visit(const annex_region* region, void* context) {
  Merge& merge = *static_cast<Merge*>(context);
  const auto low = reinterpret_cast<std::uintptr_t>(region->start);
  const std::uintptr_t high = low + region->bytes;
  if (low < merge.previous_end) {
    snprintf(merge.failure, sizeof merge.failure, "region 0x%zx begins before the last one's end", low);
    return 1;
  }
  merge.previous_end = high;
  if (region->used > region->blocks) {
    snprintf(merge.failure, sizeof merge.failure, "region 0x%zx: %zu blocks used of %zu", low, region->used,
             region->blocks);
    return 1;
  }
  std::size_t inside = 0;
  for (; merge.next != merge.end && merge.next->first < high; ++merge.next, ++inside) {
    const auto [start, end] = *merge.next;
    if (start < low || end > high) {
      snprintf(merge.failure, sizeof merge.failure, "block [0x%zx, 0x%zx) is not inside region [0x%zx, 0x%zx)", start,
               end, low, high);
      return 1;
    }
    if (region->kind == ANNEX_REGION_FREE) {
      snprintf(merge.failure, sizeof merge.failure, "live block 0x%zx lies in a free run", start);
      return 1;
    }
    if (end - start > region->block_size) {
      snprintf(merge.failure, sizeof merge.failure, "block 0x%zx has %zu bytes in a region of %zu-byte blocks", start,
               end - start, region->block_size);
      return 1;
    }
  }
  if (inside > region->used) {
    snprintf(merge.failure, sizeof merge.failure, "region 0x%zx: %zu live blocks, but %zu used", low, inside,
             region->used);
    return 1;
  }
  return 0;
}

}  // namespace

void Model::check_walk() {
  if (failed_) return;
  Merge merge{extents_.begin(), extents_.end()};
  if (annex_heap_walk(visit, &merge) != 0) return fail("heap walk: %s", merge.failure);
  if (merge.next != merge.end) {
    fail("heap walk: no region holds the live block at 0x%zx", merge.next->first);
  }
}

void Model::check_stats() {
  if (failed_) return;
  annex_stats_t now;
  if (annex_stats(&now) != 0) return fail("annex_stats failed");
  if (now.committed > now.reserved) return fail("committed %zu > reserved %zu", now.committed, now.reserved);
  if (now.used < live_bytes_) return fail("used %zu < live %zu", now.used, live_bytes_);
  if (now.used > now.slabs + now.used_spans) {
    return fail("used %zu > slabs %zu + spans %zu", now.used, now.slabs, now.used_spans);
  }
  if (now.peak_in_use < now.slabs + now.used_spans) return fail("the peak lies below what is in use");
}

}  // namespace annex_test
