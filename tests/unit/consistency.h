// Invariants of the arenas' books, checked from outside: every granule belongs to exactly one run, free neighbours are
// joined, and the sums agree.
#pragma once

#include <gtest/gtest.h>

#include "core/arena.h"
#include "core/commitment.h"

namespace annex::test {

inline void expect_consistent() {
  os::Guard guard(arena_lock);
  size_t live = 0;
  size_t dirty = 0;
  size_t dirty_runs = 0;
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Granule* before = nullptr;
    uint32_t length = 0;
    const Granule* run = arenas[i].first();
    for (; run < arenas[i].frontier(); before = run, run += length) {
      switch (run->kind) {
        case Kind::kSlab:
          length = slab_granules(run->size_class);
          for (uint32_t k = 1; k < length; ++k) {
            ASSERT_EQ(run[k].kind, Kind::kSlabTail);
            ASSERT_EQ(run[k].back, k);
            ASSERT_EQ(run[k].magic, 0u);
          }
          ASSERT_LE(run->carved, run->capacity);
          ASSERT_LE(run->floor + run->until, run->carved);
          live += length;
          break;
        case Kind::kSpan:
          length = run->length;
          ASSERT_EQ(run->magic, 0u);
          ASSERT_LE(run->bytes, length * kGranule);
          if (length > 1) {
            ASSERT_EQ(run[length - 1].kind, Kind::kSpanTail);
          }
          live += length;
          break;
        case Kind::kFree:
          length = run->length;
          ASSERT_EQ(run->magic, 0u);
          ASSERT_EQ(run[length - 1].kind, Kind::kFree);
          ASSERT_EQ(run[length - 1].length, length);
          ASSERT_EQ(run[length - 1].dirty, run->dirty);
          if (before != nullptr && before->kind == Kind::kFree) {
            ASSERT_NE(before->dirty, run->dirty);
          }
          if (run->dirty) {
            dirty += length;
            ++dirty_runs;
          }
          break;
        default:
          FAIL() << "granule " << (run - arenas[i].metadata()) << " has no kind";
      }
      ASSERT_GT(length, 0u);
    }
    ASSERT_EQ(run, arenas[i].frontier());
  }
  EXPECT_EQ(live * kGranule, commitment.live);
  EXPECT_EQ(dirty * kGranule, commitment.dirty);
  size_t in_age_list = 0;
  const Granule* older = nullptr;
  for (const Granule* run = commitment.oldest; run != nullptr; older = run, run = run->newer) {
    ASSERT_EQ(run->older, older);
    ASSERT_EQ(run->kind, Kind::kFree);
    ASSERT_TRUE(run->dirty);
    ++in_age_list;
  }
  EXPECT_EQ(commitment.newest, older);
  EXPECT_EQ(in_age_list, dirty_runs);
}

}  // namespace annex::test
