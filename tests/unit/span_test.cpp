// Spans: rounding, resizing in place, moving pages.
#include "core/span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/resident.h"
#include "consistency.h"
#include "core/block.h"
#include "os/pages.h"
#include "pages/commitment.h"
#include "runs.h"

namespace annex {
namespace {

Span* span_of(const void* block) { return as_span(block_or_die(block)); }

void* span(size_t bytes, size_t alignment = 16) {
  bool zero;
  return allocate_span(bytes, alignment, &zero);
}

TEST(Span, SizesAreRoundedToPagesOnly) {
  void* block = span(kMaxSmall + 1);
  EXPECT_EQ(usable_size(block_or_die(block)), (kMaxSmall + os::page_size()) / os::page_size() * os::page_size());
  free_span(span_of(block));
}

TEST(Span, AlignmentsUpToManyGranules) {
  for (size_t alignment = 16; alignment <= (size_t{64} << 20); alignment *= 2) {
    void* block = span(100000, alignment);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u) << alignment;
    free_span(span_of(block));
  }
  test::expect_consistent();
}

TEST(Span, GrowsInPlaceIntoFreeNeighboursAndShrinks) {
  char* block = static_cast<char*>(span(10 * kGranule));
  Span* head = span_of(block);
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
  for (void* block : blocks) refused += !resize_span_in_place(span_of(block), 3 * kGranule);
  EXPECT_GT(refused, 0);
  test::expect_consistent();
  for (void* block : blocks) free_span(span_of(block));
  test::expect_consistent();
}

// Whether realloc can move pages here: not before Linux 5.7, nor in every sandbox.
bool pages_can_be_moved() {
  char* from = static_cast<char*>(span(kHugePage));
  char* to = static_cast<char*>(move_span(span_of(from), 2 * kHugePage));
  free_span(span_of(to != nullptr ? to : from));
  return to != nullptr;
}

TEST(Span, MovesPagesHoweverManyAddressesAreInUse) {
  if (!pages_can_be_moved()) GTEST_SKIP() << "this kernel can't move pages and keep the range";
  bool zero = false;
  void* const large = allocate_span(size_t{40} << 30, 1, &zero);  // nobody touches it
  if (large == nullptr) GTEST_SKIP() << "so many addresses can't be had here";
  EXPECT_TRUE(pages_can_be_moved());
  free_span(span_of(large));
}

TEST(Span, MovesPages) {
  if (!pages_can_be_moved()) GTEST_SKIP() << "this kernel can't move pages and keep the range";
  for (const size_t bytes : {2 * kHugePage, 2 * kHugePage + 5 * kGranule, 3 * kHugePage - 4096}) {
    char* from = static_cast<char*>(span(bytes));
    memset(from, 0x21, bytes);
    const size_t live = page_heap.books.live;
    const size_t peak = page_heap.books.peak;
    char* to = static_cast<char*>(move_span(span_of(from), 2 * bytes));
    ASSERT_NE(to, nullptr);
    for (size_t i = 0; i < bytes; i += 64) ASSERT_EQ(to[i], 0x21);
    for (size_t i = 0; i < bytes; i += 64) ASSERT_EQ(from[i], 0);  // nobody's, and clean
    EXPECT_GE(usable_size(block_or_die(to)), 2 * bytes);
    // In two places at once it was only for a moment.
    EXPECT_LE(page_heap.books.live, live + bytes + kGranule);
    EXPECT_LE(page_heap.books.peak, std::max(peak, live + bytes + kGranule));
    memset(to, 0x22, 2 * bytes);
    test::expect_consistent();
    free_span(span_of(to));
    test::expect_consistent();
  }
}

TEST(Span, MovesNothingSmall) {
  void* small = span(kHugePage - kGranule);
  EXPECT_EQ(move_span(span_of(small), 2 * kHugePage), nullptr);
  free_span(span_of(small));
  test::expect_consistent();
}

// Spans of `bytes`, every second one freed: as much is dirty as is in use, and no hole is longer than one of them.
class Holes {
 public:
  Holes(size_t bytes, int count) : blocks_(count) {
    for (char*& block : blocks_) memset(block = static_cast<char*>(span(bytes)), 0x33, bytes);
    for (size_t i = 0; i < blocks_.size(); i += 2) free_span(span_of(blocks_[i]));
  }
  ~Holes() {
    for (size_t i = 1; i < blocks_.size(); i += 2) free_span(span_of(blocks_[i]));
  }
  void expect_unchanged(size_t bytes) const {
    for (size_t i = 1; i < blocks_.size(); i += 2) {
      for (size_t at = 0; at < bytes; at += 64) ASSERT_EQ(blocks_[i][at], 0x33);
    }
  }

 private:
  std::vector<char*> blocks_;
};

TEST(Span, IsGatheredFromHoles) {
  if (!pages_can_be_moved()) GTEST_SKIP() << "this kernel can't move pages and keep the range";
  page_heap.trim();
  constexpr size_t kBytes = 3 * kHugePage;
  Holes holes(kBytes, 8);
  const size_t dirty = page_heap.books.dirty;
  ASSERT_GE(dirty, 4 * kBytes);
  bool zero = true;
  char* block = static_cast<char*>(allocate_span(2 * kBytes + kGranule, 16, &zero));
  EXPECT_FALSE(zero);
  // What is dirty was used, and nothing fresh: of the last 2 MiB a granule is the span's, the rest stays dirty.
  EXPECT_EQ(page_heap.books.dirty, dirty - 2 * kBytes - kGranule);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kHugePage, 0u);
  for (size_t at = 0; at < 2 * kBytes; at += os::page_size()) ASSERT_TRUE(annex_test::is_resident(block + at)) << at;
  memset(block, 0x44, 2 * kBytes + kGranule);
  test::expect_consistent();
  holes.expect_unchanged(kBytes);
  free_span(span_of(block));
  test::expect_consistent();
}

TEST(Span, IsNotGatheredWhereTooLittleIsDirty) {
  page_heap.trim();
  Holes holes(kHugePage, 8);
  bool zero = false;
  void* block = allocate_span(64 * kHugePage, 16, &zero);
  EXPECT_TRUE(zero);  // calloc need not clear it
  free_span(span_of(block));
  test::expect_consistent();
}

TEST(Span, GrowsElsewhereIntoWhatIsDirty) {
  if (!pages_can_be_moved()) GTEST_SKIP() << "this kernel can't move pages and keep the range";
  page_heap.trim();
  constexpr size_t kBytes = 2 * kHugePage;
  char* from = static_cast<char*>(span(kBytes));
  Holes holes(kBytes, 6);
  memset(from, 0x55, kBytes);
  const size_t dirty = page_heap.books.dirty;
  char* to = static_cast<char*>(move_span(span_of(from), 2 * kBytes));
  ASSERT_NE(to, nullptr);
  EXPECT_EQ(page_heap.books.dirty, dirty - kBytes);  // the second half; the first half's pages came along
  for (size_t at = 0; at < kBytes; at += 64) ASSERT_EQ(to[at], 0x55);
  memset(to, 0x66, 2 * kBytes);
  holes.expect_unchanged(kBytes);
  test::expect_consistent();
  free_span(span_of(to));
}

TEST(Span, AbsurdSizesAreRefused) { EXPECT_EQ(span(size_t{1} << 62), nullptr); }

}  // namespace
}  // namespace annex
