// Size classes: the smallest block that fits, bounded waste, alignment.
#include "core/size_class.h"

#include <gtest/gtest.h>

#include <random>

#include "core/slab_record.h"
#include "front/request.h"

namespace annex {
namespace {

TEST(SizeClass, EverySizeGetsTheSmallestClassThatFits) {
  SizeClass expected = 0;
  for (size_t n = 1; n <= kMaxSmall; ++n) {
    while (block_size(expected) < n) ++expected;
    ASSERT_EQ(class_of(n), expected) << n;
  }
  EXPECT_EQ(class_of(0), class_of(1));
}

TEST(SizeClass, WasteAbove128BytesIsUnderAnEighth) {
  for (size_t n = 129; n <= kMaxSmall; ++n) {
    const double waste =
        static_cast<double>(block_size(class_of(n)) - n) / static_cast<double>(block_size(class_of(n)));
    ASSERT_LE(waste, 0.1112) << n;
  }
}

TEST(SizeClass, BlocksAreMultiplesOf16AndGrow) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    EXPECT_EQ(block_size(c) % kMinAlignment, 0u);
    if (c > 0) {
      EXPECT_GT(block_size(c), block_size(c - 1));
    }
  }
}

TEST(SizeClass, SlabsLoseLittleAtTheirEnd) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const size_t bytes = slab_granules(c) * kGranule;
    EXPECT_LE(bytes - slab_capacity(c) * block_size(c), bytes / 8) << block_size(c);
    EXPECT_GE(slab_capacity(c), 2u);
    // With a granule less, more would be lost.
    const size_t shorter = bytes - kGranule;
    if (shorter > 0) {
      EXPECT_GT(shorter % block_size(c), shorter / 8) << block_size(c);
    }
  }
}

TEST(SizeClass, AKeyTellsBlocksFromOtherOffsets) {
  std::mt19937 random(5);
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (slab_granules(c) != 1) continue;
    const uint32_t capacity = slab_capacity(c);
    for (const uint16_t part : {uint16_t{0}, static_cast<uint16_t>(random()), uint16_t{0xffff}}) {
      Slab slab{};
      slab.key = slab_key(c, part, part);
      ASSERT_EQ(owner_in(slab.key), part);
      ASSERT_GT(slab.key >> 48, 0u);  // a mark is no address
      for (const uint32_t carved : {0u, static_cast<uint32_t>(1 + random() % capacity), capacity}) {
        slab.limit = slab_limit(c, slab.key, carved);
        uint32_t wrong = 0;
        for (uint32_t offset = 0; offset < kGranule; ++offset) {
          const bool block = offset % block_size(c) == 0 && offset / block_size(c) < carved;
          wrong += block_starts_at(&slab, offset) != block;
        }
        EXPECT_EQ(wrong, 0u) << block_size(c) << " " << carved;
      }
    }
  }
}

TEST(SizeClass, AlignedClassIsAlignedAndFits) {
  for (size_t alignment = 16; alignment <= kMaxSmall; alignment *= 2) {
    for (size_t n = 1; n <= kMaxSmall; n += 37) {
      const SizeClass c = front::aligned_class(alignment, n);
      ASSERT_LT(c, kClasses);
      ASSERT_GE(block_size(c), n);
      ASSERT_EQ(block_size(c) % alignment, 0u);
    }
  }
  EXPECT_EQ(front::aligned_class(2 * kMaxSmall, 1), kClasses);
  EXPECT_EQ(front::aligned_class(16, kMaxSmall + 1), kClasses);
}

}  // namespace
}  // namespace annex
