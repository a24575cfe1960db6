// aligned_alloc: every power of two up to 4 MiB, and what is not a power of two.
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api.h"

using namespace annex_test;

TEST(AlignedAlloc, EveryAlignmentUpTo4MiB) {
  struct Block {
    void* start;
    std::size_t touched;
  };
  for (std::size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 2) {
    std::vector<Block> blocks;
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{33}, std::size_t{500},
                              3 * kKiB, alignment - 1, alignment, alignment + 1, 2 * alignment + 40, 200 * kKiB}) {
      for (int copy = 0; copy < 3; ++copy) {
        void* block = opaque(aligned_alloc(alignment, bytes));
        ASSERT_NE(block, nullptr) << alignment << ' ' << bytes;
        ASSERT_TRUE(is_aligned(block, alignment)) << block << " for " << alignment << ' ' << bytes;
        ASSERT_TRUE(is_aligned(block, kFundamental)) << block << " for " << alignment << ' ' << bytes;
        ASSERT_GE(malloc_usable_size(block), bytes);
        const std::size_t touched = bytes < 64 * kKiB ? bytes : 64 * kKiB;
        fill(block, touched, blocks.size());
        blocks.push_back({block, touched});
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_EQ(mismatch(blocks[i].start, blocks[i].touched, i), kNoMismatch) << alignment << ' ' << i;
      free(blocks[i].start);
    }
  }
}

TEST(AlignedAlloc, BlocksWithOneAlignmentDoNotOverlap) {
  for (std::size_t alignment : {std::size_t{32}, std::size_t{64}, std::size_t{256}, 4 * kKiB, 64 * kKiB}) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < 200; ++i) {
      blocks.push_back(opaque(aligned_alloc(alignment, alignment + 8)));
      ASSERT_NE(blocks.back(), nullptr);
      fill(blocks.back(), alignment + 8, i);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_EQ(mismatch(blocks[i], alignment + 8, i), kNoMismatch) << alignment << ' ' << i;
      free(blocks[i]);
    }
  }
}

TEST(AlignedAlloc, SizeNeedNotBeAMultipleOfTheAlignment) {
  // C11 demanded it, C17 and glibc do not.
  void* block = opaque(aligned_alloc(4096, 10));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_aligned(block, 4096));
  free(block);
}

// Before 2.38 glibc rounds the alignment up; tests/guests/aligned.c compares with libc's own function.
TEST(AlignedAlloc, AlignmentThatIsNoPowerOfTwoIsAsTheLibrarysVersionHasIt) {
  const bool rounds = std::atoi(std::strchr(gnu_get_libc_version(), '.') + 1) < 38;
  for (std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{48}, std::size_t{4095}}) {
    if (!rounds) {
      EXPECT_INVALID(aligned_alloc(opaque(alignment), 100));
      continue;
    }
    void* block = opaque(aligned_alloc(opaque(alignment), 100));
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_TRUE(is_aligned(block, std::bit_ceil(alignment))) << block << ' ' << alignment;
    fill(block, 100, 1);
    free(block);
  }
  EXPECT_INVALID(aligned_alloc(opaque(SIZE_MAX), 100));
}

TEST(AlignedAlloc, WhatCannotBeHadFails) {
  EXPECT_NO_MEMORY(aligned_alloc(64, opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(aligned_alloc(64, opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(aligned_alloc(64, opaque(SIZE_MAX - 63)));
  EXPECT_NO_MEMORY(aligned_alloc(4 * kMiB, opaque(SIZE_MAX - 2 * kMiB)));
  EXPECT_NO_MEMORY(aligned_alloc(4 * kMiB, opaque(kMaxObject - kMiB)));
  EXPECT_NO_MEMORY(aligned_alloc(opaque(std::size_t{1} << 62), 1));
}

TEST(AlignedAlloc, AlignmentsBeyondAHugePageWork) {
  for (std::size_t alignment = 8 * kMiB; alignment <= 256 * kMiB; alignment *= 2) {
    void* block = opaque(aligned_alloc(alignment, 1000));
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_TRUE(is_aligned(block, alignment)) << block << ' ' << alignment;
    fill(block, 1000, 1);
    free(block);
  }
}
