// Room to grow in, and what is mapped there (os/pages.h).
#include "os/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <barrier>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "common/resident.h"
#include "core/slab_record.h"

namespace annex {
namespace {

constexpr size_t kBytes = size_t{1} << 30;

using FindRoom = char*(size_t, size_t);

class Room : public ::testing::TestWithParam<FindRoom*> {};
INSTANTIATE_TEST_SUITE_P(PagesTest, Room, ::testing::Values(os::room, os::room_anywhere),
                         [](const auto& info) { return info.param == os::room ? "InOrder" : "Anywhere"; });

TEST_P(Room, IsAlignedApartAndBelowTheEnd) {
  std::vector<uintptr_t> starts;
  for (const size_t alignment : {kHugePage, kHugePage, os::page_size(), kHugePage * 8}) {
    char* const start = GetParam()(kBytes, alignment);
    ASSERT_NE(start, nullptr);
    const uintptr_t address = reinterpret_cast<uintptr_t>(start);
    EXPECT_EQ(address % alignment, 0u);
    EXPECT_LE(address + kBytes, os::kEndOfAddresses);
    for (const uintptr_t other : starts) EXPECT_TRUE(address + kBytes <= other || other + kBytes <= address);
    starts.push_back(address);
    ASSERT_EQ(os::map_at(start, os::page_size()), os::MapResult::kMapped);
    *static_cast<volatile char*>(start) = 1;
    os::unmap(start, os::page_size());
  }
}

TEST_P(Room, CostsNothingButWhatIsMapped) {
  if (os::kRoomIsReserved) GTEST_SKIP() << "room is reserved under ThreadSanitizer";
  const size_t before = annex_test::address_space_bytes();
  char* const start = GetParam()(kBytes, kHugePage);
  EXPECT_EQ(annex_test::address_space_bytes(), before);
  ASSERT_EQ(os::map_at(start, kHugePage), os::MapResult::kMapped);
  EXPECT_EQ(annex_test::address_space_bytes(), before + kHugePage);
  ASSERT_EQ(os::map_at(start + kHugePage, kHugePage), os::MapResult::kMapped);
  EXPECT_EQ(annex_test::address_space_bytes(), before + 2 * kHugePage);
  os::unmap(start, 2 * kHugePage);
  EXPECT_EQ(annex_test::address_space_bytes(), before);
}

TEST_P(Room, WhatIsMappedThereStays) {
  if (os::kRoomIsReserved) GTEST_SKIP() << "room is reserved under ThreadSanitizer";
  char* const start = GetParam()(kBytes, kHugePage);
  ASSERT_EQ(mmap(start + kHugePage, kHugePage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            start + kHugePage);
  start[kHugePage] = 77;
  const size_t before = annex_test::address_space_bytes();
  EXPECT_EQ(os::map_at(start, 2 * kHugePage), os::MapResult::kTaken);
  EXPECT_EQ(annex_test::address_space_bytes(), before);
  EXPECT_EQ(start[kHugePage], 77);
  EXPECT_EQ(os::map_at(start, kHugePage), os::MapResult::kMapped);
  os::unmap(start, 2 * kHugePage);
}

// The kernel's rule for what asks for no place leaves it alone.
TEST_P(Room, IsFarFromWhatTheKernelMaps) {
  if (os::kRoomIsReserved) GTEST_SKIP() << "room is reserved under ThreadSanitizer";
  char* const start = GetParam()(kBytes, kHugePage);
  void* const theirs = mmap(nullptr, kHugePage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(theirs, MAP_FAILED);
  const uintptr_t apart = reinterpret_cast<uintptr_t>(theirs) - reinterpret_cast<uintptr_t>(start);
  EXPECT_GE(apart, kBytes);
  munmap(theirs, kHugePage);
}

TEST(PagesTest, WrittenIsWhatIsNotAllZeros) {
  char* const start = static_cast<char*>(os::map(4 * os::page_size()));
  ASSERT_NE(start, nullptr);
  start[os::page_size() + 77] = 1;
  start[2 * os::page_size()] = 1;
  EXPECT_FALSE(os::is_written(start));
  EXPECT_TRUE(os::is_written(start + os::page_size()));
  EXPECT_TRUE(os::is_written(start + 2 * os::page_size() + 5));
  ASSERT_EQ(mprotect(start + 2 * os::page_size(), os::page_size(), PROT_NONE), 0);
  EXPECT_FALSE(os::is_written(start + 2 * os::page_size()));
  os::unmap(start, 4 * os::page_size());
}

// Pages that are locked in memory go back as others do, where the kernel can (5.18).
TEST(PagesTest, LockedPagesAreGivenBack) {
  char* const start = static_cast<char*>(os::map(os::page_size()));
  ASSERT_NE(start, nullptr);
  if (mlock(start, os::page_size()) != 0) GTEST_SKIP() << "nothing can be locked here";
  *start = 1;
  if (os::purge(start, os::page_size())) {
    EXPECT_EQ(*start, 0);
  } else {
    EXPECT_EQ(*start, 1);
  }
  os::unmap(start, os::page_size());
}

TEST(PagesTest, FirstMemoryMayBeMappedByManyThreads) {  // ThreadSanitizer looks on
  constexpr int kThreads = 4;
  std::barrier all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all] {
      all.arrive_and_wait();
      void* const start = os::map(os::page_size());
      EXPECT_NE(start, nullptr);
      EXPECT_TRUE(os::unmap(start, os::page_size()));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace annex
