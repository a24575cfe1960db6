// Address space that is reserved (os/pages.h). This is an executable: the way of a shared library, one system call
// below it, is for the conformance tests to run.
#include "os/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/granule.h"

namespace annex {
namespace {

constexpr size_t kBytes = size_t{1} << 30;

TEST(PagesTest, ReservationsAreAlignedAndApart) {
  std::vector<uintptr_t> starts;
  for (const size_t alignment : {kHugePage, kHugePage, os::page_size(), kHugePage * 8}) {
    void* const start = os::reserve(kBytes, alignment);
    ASSERT_NE(start, nullptr);
    const uintptr_t address = reinterpret_cast<uintptr_t>(start);
    EXPECT_EQ(address % alignment, 0u);
    for (const uintptr_t other : starts) EXPECT_TRUE(address + kBytes <= other || other + kBytes <= address);
    starts.push_back(address);
    ASSERT_TRUE(os::commit(start, os::page_size()));
    *static_cast<volatile char*>(start) = 1;
  }
  for (const uintptr_t start : starts) munmap(reinterpret_cast<void*>(start), kBytes);
}

// What was mapped besides, to align it, is given back.
TEST(PagesTest, AReservationMapsNoMoreThanWasAskedFor) {
  const auto address_space = [] {
    size_t pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * os::page_size();
  };
  std::vector<void*> starts(2);
  address_space();  // what reading it takes is mapped then
  const size_t before = address_space();
  for (void*& start : starts) {
    const size_t mapped = address_space();
    start = os::reserve(kBytes, kHugePage);
    ASSERT_NE(start, nullptr);
    EXPECT_EQ(address_space(), mapped + kBytes);
  }
  for (void* start : starts) munmap(start, kBytes);
  EXPECT_EQ(address_space(), before);
}

}  // namespace
}  // namespace annex
