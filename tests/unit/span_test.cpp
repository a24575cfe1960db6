// Spans: rounding, resizing in place, moving pages.
#include "core/span.h"

#include <gtest/gtest.h>

#include <cstring>

#include "consistency.h"
#include "core/block.h"
#include "os/pages.h"

namespace annex {
namespace {

void* span(size_t bytes, size_t alignment = 16) {
  bool zero;
  return allocate_span(bytes, alignment, &zero);
}

TEST(Span, SizesAreRoundedToPagesOnly) {
  void* block = span(kMaxSmall + 1);
  EXPECT_EQ(usable_size(block_or_die(block)), (kMaxSmall + os::page_size()) / os::page_size() * os::page_size());
  free_span(block_or_die(block));
}

TEST(Span, AlignmentsUpToManyGranules) {
  for (size_t alignment = 16; alignment <= (size_t{64} << 20); alignment *= 2) {
    void* block = span(100000, alignment);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u) << alignment;
    free_span(block_or_die(block));
  }
  test::expect_consistent();
}

TEST(Span, GrowsInPlaceIntoFreeNeighboursAndShrinks) {
  char* block = static_cast<char*>(span(10 * kGranule));
  Granule* head = block_or_die(block);
  memset(block, 7, 10 * kGranule);
  ASSERT_TRUE(resize_span_in_place(head, 3 * kGranule + 5));
  EXPECT_EQ(head->length, 4u);
  ASSERT_TRUE(resize_span_in_place(head, 9 * kGranule));  // what it gave back a moment ago
  EXPECT_EQ(head->length, 9u);
  for (size_t i = 0; i < 3 * kGranule; ++i) ASSERT_EQ(block[i], 7);
  test::expect_consistent();
  free_span(head);
}

TEST(Span, DoesNotGrowIntoWhatIsInUse) {
  void* blocks[64];
  for (void*& block : blocks) block = span(kGranule);
  int refused = 0;
  for (void* block : blocks) refused += !resize_span_in_place(block_or_die(block), 3 * kGranule);
  EXPECT_GT(refused, 0);
  test::expect_consistent();
  for (void* block : blocks) free_span(block_or_die(block));
  test::expect_consistent();
}

TEST(Span, MovesPages) {
  const size_t bytes = size_t{4} << 20;
  char* from = static_cast<char*>(span(bytes));
  char* to = static_cast<char*>(span(2 * bytes));
  memset(from, 0x21, bytes);
  if (!move_span(block_or_die(from), block_or_die(to)))
    GTEST_SKIP() << "this kernel can't move pages and keep the range";
  for (size_t i = 0; i < bytes; i += 64) ASSERT_EQ(to[i], 0x21);
  for (size_t i = 0; i < bytes; i += 64) ASSERT_EQ(from[i], 0);
  test::expect_consistent();
  free_span(block_or_die(to));
}

TEST(Span, AbsurdSizesAreRefused) { EXPECT_EQ(span(size_t{1} << 62), nullptr); }

}  // namespace
}  // namespace annex
