// memalign, valloc and pvalloc, the forms that are older than POSIX.
#include <gtest/gtest.h>
#include <unistd.h>

#include "api.h"

using namespace annex_test;

namespace {
std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
}  // namespace

TEST(Memalign, EveryAlignmentUpTo4MiB) {
  for (std::size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 2) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{70}, alignment + 3}) {
      void* block = opaque(memalign(alignment, bytes));
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_aligned(block, alignment)) << block << ' ' << alignment;
      ASSERT_TRUE(is_aligned(block, kFundamental)) << block << ' ' << alignment;
      ASSERT_GE(malloc_usable_size(block), bytes);
      free(block);
    }
  }
}

TEST(Memalign, OtherAlignmentsAreRoundedUp) {
  // As glibc has it, unlike aligned_alloc.
  for (std::size_t alignment :
       {std::size_t{3}, std::size_t{24}, std::size_t{48}, std::size_t{100}, std::size_t{5000}}) {
    std::size_t rounded = 1;
    while (rounded < alignment) rounded *= 2;
    for (int i = 0; i < 4; ++i) {
      void* block = opaque(memalign(opaque(alignment), 40));
      ASSERT_NE(block, nullptr) << alignment;
      EXPECT_TRUE(is_aligned(block, rounded)) << block << ' ' << alignment;
      free(block);
    }
  }
  void* block = opaque(memalign(opaque(std::size_t{0}), 40));
  ASSERT_NE(block, nullptr);
  free(block);
}

TEST(Memalign, WhatCannotBeHadFails) {
  EXPECT_NO_MEMORY(memalign(64, opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(memalign(64, opaque(SIZE_MAX)));
  EXPECT_INVALID(memalign(opaque(SIZE_MAX), 1));
}

TEST(Memalign, VallocAlignsToThePage) {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, page() - 1, page(), page() + 1, 3 * kMiB}) {
    void* block = opaque(valloc(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, page()));
    EXPECT_GE(malloc_usable_size(block), bytes);
    fill(block, bytes, 2);
    free(block);
  }
  EXPECT_NO_MEMORY(valloc(opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(valloc(opaque(SIZE_MAX)));
}

TEST(Memalign, PvallocRoundsTheSizeToThePage) {
  for (std::size_t bytes : {std::size_t{1}, page() - 1, page(), page() + 1, 3 * kMiB + 1}) {
    void* block = opaque(pvalloc(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, page()));
    const std::size_t rounded = (bytes + page() - 1) / page() * page();
    EXPECT_GE(malloc_usable_size(block), rounded);
    fill(block, rounded, 2);
    EXPECT_EQ(mismatch(block, rounded, 2), kNoMismatch);
    free(block);
  }
  void* none = opaque(pvalloc(opaque(std::size_t{0})));
  ASSERT_NE(none, nullptr);
  EXPECT_TRUE(is_aligned(none, page()));
  free(none);
  EXPECT_NO_MEMORY(pvalloc(opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(pvalloc(opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(pvalloc(opaque(SIZE_MAX - page() + 2)));
}
