// The malloc cache's contents: Mallacc's Figures 8, 9 and 11, instruction by instruction.
#include "hardware/malloc_cache.h"

#include <gtest/gtest.h>

namespace annex::sim {
namespace {

using Keys = MallocCache::Keys;

struct SizeCache : MallocCache {
  explicit SizeCache(uint32_t entries = 4) : MallocCache(entries, Keys::kSizes) {}

  uint32_t of(uint64_t size) {
    const auto found = look_up(size);
    return found ? found->number : 0;
  }
};

TEST(MallocCache, ASizeIsKnownFromTheOneAskedForToTheClassesBlocks) {
  SizeCache cache;
  EXPECT_FALSE(cache.look_up(40));
  cache.update(40, {4, 48});
  EXPECT_FALSE(cache.look_up(39));
  EXPECT_EQ(cache.look_up(40)->number, 4u);
  EXPECT_EQ(cache.look_up(40)->bytes, 48u);
  EXPECT_EQ(cache.of(48), 4u);
  EXPECT_FALSE(cache.look_up(49));
}

TEST(MallocCache, ARangeGrowsDownwards) {
  SizeCache cache;
  cache.update(48, {4, 48});
  EXPECT_FALSE(cache.look_up(41));
  cache.update(41, {4, 48});
  EXPECT_EQ(cache.of(41), 4u);
  EXPECT_EQ(cache.of(45), 4u);
  cache.update(47, {4, 48});  // is in it already
  EXPECT_EQ(cache.of(41), 4u);
  EXPECT_EQ(cache.size(), 1u);
}

// (s + 7) >> 3 up to 1024, then (s + 127 + (120 << 7)) >> 7.
TEST(MallocCache, TheIndexOfASizeIsTCMallocs) {
  EXPECT_EQ(MallocCache::index_of(0), 0u);
  EXPECT_EQ(MallocCache::index_of(1), 1u);
  EXPECT_EQ(MallocCache::index_of(8), 1u);
  EXPECT_EQ(MallocCache::index_of(9), 2u);
  EXPECT_EQ(MallocCache::index_of(512), 64u);
  EXPECT_EQ(MallocCache::index_of(1024), 128u);
  EXPECT_EQ(MallocCache::index_of(1025), 129u);
  EXPECT_EQ(MallocCache::index_of(1152), 129u);
  EXPECT_EQ(MallocCache::index_of(1153), 130u);
  EXPECT_EQ(MallocCache::index_of(32768), 376u);
}

TEST(MallocCache, IndicesAreLearntFasterThanSizes) {
  MallocCache cache(4, Keys::kIndices);
  cache.update(47, {4, 48});
  EXPECT_TRUE(cache.look_up(41));
  EXPECT_FALSE(cache.look_up(40));
}

TEST(MallocCache, TheLeastRecentlyUsedEntryMakesRoom) {
  SizeCache cache(2);
  EXPECT_FALSE(cache.update(16, {1, 16}));
  EXPECT_FALSE(cache.update(32, {2, 32}));
  EXPECT_TRUE(cache.look_up(16));
  EXPECT_TRUE(cache.update(48, {3, 48}));
  EXPECT_FALSE(cache.look_up(32));
  EXPECT_TRUE(cache.look_up(16));
  EXPECT_TRUE(cache.look_up(48));
  // Pops and pushes use an entry too.
  cache.push(1, 0x1000);
  cache.update(64, {4, 64});
  EXPECT_TRUE(cache.look_up(16));
  EXPECT_FALSE(cache.look_up(48));
}

// Sizes that come round in turn: all hit if there is an entry for each class, and none if there is one less.
TEST(MallocCache, AStrideHitsFromAsManyEntriesOnAsItHasClasses) {
  for (const uint32_t entries : {7u, 8u}) {
    SizeCache cache(entries);
    unsigned hits = 0;
    for (unsigned round = 0; round < 10; ++round) {
      for (uint32_t number = 1; number <= 8; ++number) {
        if (cache.look_up(32 * number)) {
          ++hits;
        } else {
          cache.update(32 * number, {number, 32 * number});
        }
      }
    }
    EXPECT_EQ(hits, entries == 8 ? 9u * 8 : 0u) << entries;
  }
}

TEST(MallocCache, OneOfNoEntriesKeepsNothing) {
  SizeCache cache(0);
  EXPECT_FALSE(cache.update(16, {1, 16}));
  EXPECT_FALSE(cache.look_up(16));
  cache.push(1, 0x1000);
  EXPECT_FALSE(cache.pop(1));
  EXPECT_FALSE(cache.wants_next(1));
}

TEST(MallocCache, APopHitsWithHeadAndNext) {
  SizeCache cache;
  cache.update(16, {1, 16});
  cache.push(1, 0x1000);
  cache.push(1, 0x2000);
  const auto blocks = cache.pop(1);
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->head, 0x2000u);
  EXPECT_EQ(blocks->next, 0x1000u);
}

// The head that it has is dropped: software takes it.
TEST(MallocCache, APopWithoutTheNextMissesAndDropsTheHead) {
  SizeCache cache;
  cache.update(16, {1, 16});
  cache.push(1, 0x1000);
  EXPECT_FALSE(cache.pop(1));
  cache.push(1, 0x2000);
  EXPECT_FALSE(cache.pop(1));  // or it would have handed out 0x2000, and then 0x1000 again
}

TEST(MallocCache, AfterAHitTheNextIsTheHead) {
  SizeCache cache;
  cache.update(16, {1, 16});
  cache.push(1, 0x1000);
  cache.push(1, 0x2000);
  cache.pop(1);
  cache.push(1, 0x3000);
  const auto blocks = cache.pop(1);
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->head, 0x3000u);
  EXPECT_EQ(blocks->next, 0x1000u);
}

TEST(MallocCache, APushOfNothingDropsBoth) {
  SizeCache cache;
  cache.update(16, {1, 16});
  cache.push(1, 0x1000);
  cache.push(1, 0x2000);
  cache.push(1, 0);
  EXPECT_FALSE(cache.pop(1));
}

TEST(MallocCache, APrefetchFillsWhatIsMissing) {
  SizeCache cache;
  EXPECT_FALSE(cache.wants_next(1));
  cache.update(16, {1, 16});
  EXPECT_TRUE(cache.wants_next(1));
  cache.fill(1, {0x2000, 0x3000}, 70);
  EXPECT_FALSE(cache.wants_next(1));
  EXPECT_EQ(cache.filled_by(1), 70u);
  EXPECT_EQ(cache.filled_by(2), 0u);
  EXPECT_EQ(cache.pop(1)->head, 0x2000u);
  EXPECT_TRUE(cache.wants_next(1));
}

TEST(MallocCache, AFlushLeavesNothing) {
  SizeCache cache;
  EXPECT_FALSE(cache.flush());
  cache.update(16, {1, 16});
  EXPECT_TRUE(cache.flush());
  EXPECT_FALSE(cache.look_up(16));
}

}  // namespace
}  // namespace annex::sim
