// malloc: alignment, distinct writable blocks, zero bytes, sizes that cannot be had.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "api.h"

using namespace annex_test;

TEST(Malloc, EveryBlockIsAlignedAndWritable) {
  for_each_interesting_size(16 * kMiB, [](std::size_t bytes) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr) << bytes;
    ASSERT_TRUE(is_aligned(block, kFundamental)) << block << " for " << bytes;
    fill(block, bytes, bytes);
    ASSERT_EQ(mismatch(block, bytes, bytes), kNoMismatch) << bytes;
    free(block);
  });
}

TEST(Malloc, LiveBlocksDoNotOverlap) {
  struct Block {
    char* start;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  for_each_interesting_size(64 * kKiB, [&](std::size_t bytes) {
    for (int copy = 0; copy < 4; ++copy) {
      auto* start = static_cast<char*>(opaque(malloc(bytes)));
      ASSERT_NE(start, nullptr);
      fill(start, bytes, blocks.size());
      blocks.push_back({start, bytes});
    }
  });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(mismatch(blocks[i].start, blocks[i].bytes, i), kNoMismatch) << "block " << i;
  }
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    ASSERT_LE(blocks[i - 1].start + blocks[i - 1].bytes, blocks[i].start);
    ASSERT_NE(blocks[i - 1].start, blocks[i].start);
  }
  for (const Block& block : blocks) free(block.start);
}

TEST(Malloc, ZeroBytesGiveDistinctBlocks) {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    void* block = opaque(malloc(0));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(is_aligned(block, kFundamental));
    blocks.push_back(block);
  }
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
  for (void* block : blocks) free(block);
}

TEST(Malloc, FreedMemoryIsUsedAgain) {
  // One block at a time: an allocator that never reuses shows as many addresses as calls.
  for (std::size_t bytes : {std::size_t{48}, 3 * kKiB, 100 * kKiB, 3 * kMiB}) {
    const std::size_t rounds = 1024 * kMiB / bytes / 8;
    std::vector<void*> seen;
    for (std::size_t round = 0; round < rounds; ++round) {
      void* block = opaque(malloc(bytes));
      ASSERT_NE(block, nullptr);
      if (seen.size() < 100000) seen.push_back(block);
      free(block);
    }
    std::sort(seen.begin(), seen.end());
    const std::size_t taken = seen.size();
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    // In the hardened flavour what is freed waits a while.
    const std::size_t few = flavour() == Flavour::kHardened ? 512 : 16;
    EXPECT_LE(seen.size(), std::max<std::size_t>(taken / 4, few)) << "addresses of " << bytes << "-byte blocks";
  }
}

TEST(Malloc, SizesBeyondPtrdiffMaxFail) {
  for (std::size_t bytes : {kMaxObject + 1, kMaxObject + 4096, SIZE_MAX / 2 + 4096, SIZE_MAX - 4096, SIZE_MAX - 16,
                            SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_NO_MEMORY(malloc(opaque(bytes)));
  }
}

TEST(Malloc, SizesThatNoAddressSpaceHoldsFail) {
  for (std::size_t bytes :
       {kMaxObject, kMaxObject - 4096, kMaxObject / 2, std::size_t{1} << 48, std::size_t{1} << 47}) {
    EXPECT_NO_MEMORY(malloc(opaque(bytes)));
  }
}

TEST(Malloc, GoesOnAfterAFailure) {
  EXPECT_NO_MEMORY(malloc(opaque(kMaxObject)));
  void* block = opaque(malloc(opaque(std::size_t{100})));
  ASSERT_NE(block, nullptr);
  free(block);
}

TEST(Malloc, LargeBlocksAreWholeAndIndependent) {
  constexpr std::size_t kBytes = 40 * kMiB;
  void* first = opaque(malloc(kBytes));
  void* second = opaque(malloc(kBytes));
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  fill(first, kBytes, 1);
  fill(second, kBytes, 2);
  EXPECT_EQ(mismatch(first, kBytes, 1), kNoMismatch);
  free(first);
  EXPECT_EQ(mismatch(second, kBytes, 2), kNoMismatch);
  free(second);
}
