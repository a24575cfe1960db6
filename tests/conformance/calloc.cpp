// calloc: zeroed memory, whatever the memory was used for before, and overflow of the product.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "api.h"

using namespace annex_test;

TEST(Calloc, FreshMemoryIsZero) {
  for_each_interesting_size(8 * kMiB, [](std::size_t bytes) {
    void* block = opaque(calloc(1, bytes));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(is_aligned(block, kFundamental));
    ASSERT_EQ(first_nonzero(block, bytes), kNoMismatch) << bytes;
    free(block);
  });
}

TEST(Calloc, ReusedMemoryIsZero) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{16}, std::size_t{40}, std::size_t{1000}, 4 * kKiB, 20 * kKiB,
                            60 * kKiB, 130 * kKiB, kMiB, 5 * kMiB, 40 * kMiB}) {
    const std::size_t count = bytes > kMiB ? 2 : bytes > 8 * kKiB ? 16 : 500;
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> blocks;
      for (std::size_t i = 0; i < count; ++i) {
        void* block = opaque(malloc(bytes));
        ASSERT_NE(block, nullptr);
        std::memset(block, 0xA5, malloc_usable_size(block));
        blocks.push_back(block);
      }
      for (void* block : blocks) free(block);
      blocks.clear();
      for (std::size_t i = 0; i < count; ++i) {
        void* block = opaque(calloc(1, bytes));
        ASSERT_NE(block, nullptr);
        ASSERT_EQ(first_nonzero(block, bytes), kNoMismatch) << bytes << " bytes, block " << i;
        std::memset(block, 0x5A, bytes);
        blocks.push_back(block);
      }
      for (void* block : blocks) free(block);
    }
  }
}

TEST(Calloc, MemoryReusedAtOtherSizesIsZero) {
  // Dirty memory at one size, free it, ask for it zeroed at another.
  for (std::size_t dirty : {std::size_t{64}, 2 * kKiB, 33 * kKiB, 700 * kKiB}) {
    std::vector<void*> blocks;
    for (std::size_t total = 0; total < 4 * kMiB; total += dirty) {
      blocks.push_back(opaque(malloc(dirty)));
      ASSERT_NE(blocks.back(), nullptr);
      std::memset(blocks.back(), 0xFF, dirty);
    }
    for (void* block : blocks) free(block);
    blocks.clear();
    for (std::size_t bytes : {std::size_t{24}, std::size_t{500}, 9 * kKiB, 200 * kKiB, 2 * kMiB}) {
      for (int i = 0; i < 8; ++i) {
        blocks.push_back(opaque(calloc(bytes, 1)));
        ASSERT_NE(blocks.back(), nullptr);
        ASSERT_EQ(first_nonzero(blocks.back(), bytes), kNoMismatch) << bytes << " after " << dirty;
      }
    }
    for (void* block : blocks) free(block);
  }
}

TEST(Calloc, ProductIsTaken) {
  auto* block = static_cast<char*>(opaque(calloc(1000, 24)));
  ASSERT_NE(block, nullptr);
  EXPECT_GE(malloc_usable_size(block), 24000u);
  EXPECT_EQ(first_nonzero(block, 24000), kNoMismatch);
  fill(block, 24000, 3);
  EXPECT_EQ(mismatch(block, 24000, 3), kNoMismatch);
  free(block);
}

TEST(Calloc, ZeroCountOrZeroSizeGivesDistinctBlocks) {
  void* a = opaque(calloc(0, 0));
  void* b = opaque(calloc(0, 10));
  void* c = opaque(calloc(10, 0));
  void* d = opaque(calloc(0, SIZE_MAX));
  void* e = opaque(calloc(SIZE_MAX, 0));
  void* all[] = {a, b, c, d, e};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(all[i], nullptr) << i;
    for (int j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]);
  }
  for (void* block : all) free(block);
}

TEST(Calloc, OverflowFails) {
  const std::size_t half = std::size_t{1} << 32;
  EXPECT_NO_MEMORY(calloc(opaque(SIZE_MAX), 2));
  EXPECT_NO_MEMORY(calloc(2, opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(calloc(opaque(half), opaque(half)));
  EXPECT_NO_MEMORY(calloc(opaque(half + 1), opaque(half)));  // wraps to 2^32
  EXPECT_NO_MEMORY(calloc(opaque(SIZE_MAX / 4 + 2), 4));     // wraps to 4
  EXPECT_NO_MEMORY(calloc(opaque(SIZE_MAX / 16 + 2), 16));   // wraps to 16
  EXPECT_NO_MEMORY(calloc(opaque(SIZE_MAX), opaque(SIZE_MAX)));
}

TEST(Calloc, ProductBeyondPtrdiffMaxFails) {
  EXPECT_NO_MEMORY(calloc(opaque(kMaxObject / 2 + 1), 2));
  EXPECT_NO_MEMORY(calloc(1, opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(calloc(opaque(kMaxObject), 1));
}
