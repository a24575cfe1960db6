// reallocarray: realloc with a product that must not overflow.
#include <gtest/gtest.h>

#include "api.h"

using namespace annex_test;

TEST(Reallocarray, NullAllocates) {
  void* block = opaque(reallocarray(opaque(nullptr), 25, 40));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_aligned(block, kFundamental));
  EXPECT_GE(malloc_usable_size(block), 1000u);
  free(block);
}

TEST(Reallocarray, KeepsContents) {
  void* block = opaque(reallocarray(opaque(nullptr), 100, 8));
  ASSERT_NE(block, nullptr);
  fill(block, 800, 4);
  block = opaque(reallocarray(block, 100000, 8));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(mismatch(block, 800, 4), kNoMismatch);
  block = opaque(reallocarray(block, 10, 8));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(mismatch(block, 80, 4), kNoMismatch);
  free(block);
}

TEST(Reallocarray, ZeroBytesFreesAndReturnsNull) {
  EXPECT_EQ(opaque(reallocarray(opaque(malloc(10)), opaque(std::size_t{0}), 8)), nullptr);
  EXPECT_EQ(opaque(reallocarray(opaque(malloc(10)), 8, opaque(std::size_t{0}))), nullptr);
}

TEST(Reallocarray, OverflowLeavesTheOldBlock) {
  const std::size_t half = std::size_t{1} << 32;
  void* block = opaque(malloc(100));
  fill(block, 100, 6);
  EXPECT_NO_MEMORY(reallocarray(block, opaque(half), opaque(half)));
  EXPECT_NO_MEMORY(reallocarray(block, opaque(half + 1), opaque(half)));
  EXPECT_NO_MEMORY(reallocarray(block, opaque(SIZE_MAX), 2));
  EXPECT_NO_MEMORY(reallocarray(block, opaque(SIZE_MAX / 8 + 2), 8));
  EXPECT_NO_MEMORY(reallocarray(block, opaque(kMaxObject / 2 + 1), 2));
  EXPECT_NO_MEMORY(reallocarray(opaque(nullptr), opaque(half), opaque(half)));
  EXPECT_EQ(mismatch(block, 100, 6), kNoMismatch);
  free(block);
}
