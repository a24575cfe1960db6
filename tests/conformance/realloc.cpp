// realloc: NULL, zero bytes, growing and shrinking with contents kept, failures that leave the old
// block alone.
#include <gtest/gtest.h>

#include <vector>

#include "api.h"

using namespace annex_test;

TEST(Realloc, NullIsMalloc) {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, 10 * kKiB, 3 * kMiB}) {
    void* block = opaque(realloc(opaque(nullptr), bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, kFundamental));
    EXPECT_GE(malloc_usable_size(block), bytes);
    free(block);
  }
}

TEST(Realloc, ZeroBytesFreesAndReturnsNull) {
  // As glibc has it. 8 GiB pass through: a block that was not freed would show.
  for (int i = 0; i < 4096; ++i) {
    void* block = opaque(malloc(2 * kMiB));
    ASSERT_NE(block, nullptr);
    *static_cast<volatile char*>(block) = 1;
    errno = 4242;
    ASSERT_EQ(opaque(realloc(block, opaque(std::size_t{0}))), nullptr);
    ASSERT_EQ(errno, 4242) << "freeing is no failure";
  }
  void* small = opaque(malloc(10));
  EXPECT_EQ(opaque(realloc(small, opaque(std::size_t{0}))), nullptr);
}

TEST(Realloc, GrowingKeepsContents) {
  for_each_interesting_size(300 * kKiB, [](std::size_t from) {
    for (std::size_t to : {from + 1, from + 17, from * 2 + 1, from * 9 + 5}) {
      void* block = opaque(malloc(from));
      ASSERT_NE(block, nullptr);
      fill(block, from, from);
      block = opaque(realloc(block, to));
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_aligned(block, kFundamental));
      ASSERT_GE(malloc_usable_size(block), to);
      ASSERT_EQ(mismatch(block, from, from), kNoMismatch) << from << " -> " << to;
      fill(block, to, 1);
      free(block);
    }
  });
}

TEST(Realloc, ShrinkingKeepsContents) {
  for_each_interesting_size(2 * kMiB, [](std::size_t from) {
    for (std::size_t to : {from - 1, from / 2, from / 9, std::size_t{1}}) {
      if (to == 0 || to > from) continue;
      void* block = opaque(malloc(from));
      ASSERT_NE(block, nullptr);
      fill(block, from, from);
      block = opaque(realloc(block, to));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(mismatch(block, to, from), kNoMismatch) << from << " -> " << to;
      free(block);
    }
  });
}

TEST(Realloc, ABlockGrowsByteByByte) {
  void* block = opaque(malloc(1));
  fill(block, 1, 5);
  for (std::size_t bytes = 2; bytes < 20000; ++bytes) {
    block = opaque(realloc(block, bytes));
    ASSERT_NE(block, nullptr);
    if (bytes % 97 == 0) {
      ASSERT_EQ(mismatch(block, (bytes - 1) & ~std::size_t{7}, 5), kNoMismatch) << bytes;
    }
    fill(block, bytes, 5);
  }
  free(block);
}

TEST(Realloc, LargeBlocksGrowAndShrinkBetweenNeighbours) {
  // Neighbours on both sides keep some of the moves from being in place.
  std::vector<void*> neighbours;
  void* block = opaque(malloc(600 * kKiB));
  ASSERT_NE(block, nullptr);
  std::size_t bytes = 600 * kKiB;
  fill(block, bytes, 9);
  for (std::size_t to : {kMiB, 3 * kMiB, 9 * kMiB, 40 * kMiB, 90 * kMiB, 41 * kMiB, 700 * kKiB, 100 * kKiB, 2 * kMiB,
                         64 * kMiB, 20 * kKiB, 33 * kMiB}) {
    neighbours.push_back(opaque(malloc(500 * kKiB)));
    fill(neighbours.back(), 500 * kKiB, neighbours.size());
    void* moved = opaque(realloc(block, to));
    ASSERT_NE(moved, nullptr);
    block = moved;
    const std::size_t kept = to < bytes ? to : bytes;
    ASSERT_EQ(mismatch(block, kept, 9), kNoMismatch) << bytes << " -> " << to;
    bytes = to;
    fill(block, bytes, 9);
  }
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    EXPECT_EQ(mismatch(neighbours[i], 500 * kKiB, i + 1), kNoMismatch) << "neighbour " << i;
    free(neighbours[i]);
  }
  free(block);
}

TEST(Realloc, GrowingALargeBlockNeverExposesOldContentsTwice) {
  // The pages that a large block gives up when it shrinks must not stay shared with the next block.
  void* block = opaque(malloc(8 * kMiB));
  fill(block, 8 * kMiB, 1);
  block = opaque(realloc(block, 2 * kMiB));
  ASSERT_NE(block, nullptr);
  void* other = opaque(malloc(6 * kMiB));
  ASSERT_NE(other, nullptr);
  fill(other, 6 * kMiB, 2);
  EXPECT_EQ(mismatch(block, 2 * kMiB, 1), kNoMismatch);
  block = opaque(realloc(block, 16 * kMiB));
  ASSERT_NE(block, nullptr);
  fill(block, 16 * kMiB, 3);
  EXPECT_EQ(mismatch(other, 6 * kMiB, 2), kNoMismatch);
  free(block);
  free(other);
}

TEST(Realloc, AlignedBlocksMayBeReallocated) {
  for (std::size_t alignment = 16; alignment <= 4 * kMiB; alignment *= 4) {
    void* block = opaque(aligned_alloc(alignment, 1000));
    ASSERT_NE(block, nullptr);
    fill(block, 1000, alignment);
    for (std::size_t to : {std::size_t{1001}, 50 * kKiB, 3 * kMiB, std::size_t{700}}) {
      block = opaque(realloc(block, to));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(mismatch(block, 700, alignment), kNoMismatch) << alignment << " to " << to;
    }
    free(block);
  }
}

TEST(Realloc, AFailureLeavesTheOldBlock) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{100}, 10 * kKiB, 5 * kMiB}) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    fill(block, bytes, bytes);
    for (std::size_t huge : {kMaxObject, kMaxObject + 1, SIZE_MAX - 4096, SIZE_MAX, std::size_t{1} << 48}) {
      EXPECT_NO_MEMORY(realloc(block, opaque(huge)));
    }
    EXPECT_EQ(mismatch(block, bytes, bytes), kNoMismatch);
    EXPECT_GE(malloc_usable_size(block), bytes);
    free(block);
  }
  EXPECT_NO_MEMORY(realloc(opaque(nullptr), opaque(kMaxObject + 1)));
}
