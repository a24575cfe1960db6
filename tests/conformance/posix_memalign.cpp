// posix_memalign: result codes instead of errno, and an untouched pointer when it fails.
#include <gtest/gtest.h>

#include "api.h"

using namespace annex_test;

namespace {
void* const kUntouched = reinterpret_cast<void*>(std::uintptr_t{0x1234567});
}

TEST(PosixMemalign, EveryAlignmentUpTo4MiB) {
  for (std::size_t alignment = sizeof(void*); alignment <= 4 * kMiB; alignment *= 2) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, alignment, 3 * alignment + 1}) {
      void* block = nullptr;
      ASSERT_EQ(posix_memalign(&block, alignment, bytes), 0);
      ASSERT_NE(opaque(block), nullptr);
      ASSERT_TRUE(is_aligned(block, alignment)) << block << ' ' << alignment;
      ASSERT_TRUE(is_aligned(block, kFundamental)) << block << ' ' << alignment;
      ASSERT_GE(malloc_usable_size(block), bytes);
      const std::size_t touched = bytes < 64 * kKiB ? bytes : 64 * kKiB;
      fill(block, touched, alignment);
      ASSERT_EQ(mismatch(block, touched, alignment), kNoMismatch);
      free(block);
    }
  }
}

TEST(PosixMemalign, InvalidAlignments) {
  for (std::size_t alignment : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{7},
                                std::size_t{12}, std::size_t{24}, std::size_t{100}, SIZE_MAX, SIZE_MAX - 7}) {
    void* block = kUntouched;
    errno = 4242;
    EXPECT_EQ(posix_memalign(&block, opaque(alignment), 100), EINVAL) << alignment;
    EXPECT_EQ(block, kUntouched) << alignment;
    EXPECT_EQ(errno, 4242) << alignment;
  }
}

TEST(PosixMemalign, WhatCannotBeHad) {
  for (std::size_t bytes : {kMaxObject, kMaxObject + 1, SIZE_MAX - 63, SIZE_MAX}) {
    void* block = kUntouched;
    EXPECT_EQ(posix_memalign(&block, 64, opaque(bytes)), ENOMEM) << bytes;
    EXPECT_EQ(block, kUntouched) << bytes;
  }
}

TEST(PosixMemalign, TouchesErrnoOnlyWhereMemoryIsExhausted) {
  void* block = nullptr;
  errno = 4242;
  ASSERT_EQ(posix_memalign(&block, 64, 3 * kMiB), 0);
  EXPECT_EQ(errno, 4242);
  free(block);
  for (std::size_t bytes : {kMaxObject, SIZE_MAX}) {
    errno = 4242;
    EXPECT_EQ(posix_memalign(&block, 64, opaque(bytes)), ENOMEM) << bytes;
    EXPECT_EQ(errno, ENOMEM) << bytes;
  }
}
