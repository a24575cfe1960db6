// A growing heap finds memory that is resident already; one that does not grow gets none.
#include "support/fault_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "core/span.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex {
namespace {

bool resident(const void* start, size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  if (mincore(const_cast<void*>(start), bytes, pages.data()) != 0) return false;
  for (const unsigned char page : pages) {
    if ((page & 1) == 0) return false;
  }
  return true;
}

TEST(FaultAhead, OnlyWhatGrows) {
  bool zero;
  void* span = allocate_span(page_heap.books.peak + (8 << 20), 16, &zero);
  ASSERT_NE(span, nullptr);
  while (fault_ahead()) {
  }
  EXPECT_GE(page_heap.books.dirty, size_t{256} << 10);
  EXPECT_LE(page_heap.books.dirty, std::max(page_heap.books.live / 32, kHugePage) + kHugePage);  // and a piece begun
  const size_t dirty = page_heap.books.dirty;
  EXPECT_FALSE(fault_ahead());
  EXPECT_EQ(page_heap.books.dirty, dirty);
  // What was made resident is what the next one gets.
  void* small = allocate_span(128 << 10, 16, &zero);
  EXPECT_FALSE(zero);
  EXPECT_TRUE(resident(small, 128 << 10));
  free_span(as_span(granule_of(small)));
  free_span(as_span(granule_of(span)));
}

}  // namespace
}  // namespace annex
