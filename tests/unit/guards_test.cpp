// Guards of either kind (os/guards.h).
#include "os/guards.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/pages.h"

namespace annex {
namespace {

constexpr size_t kGuardBytes = 65536;

// The kernel reads, and answers.
bool is_readable(const char* address) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool readable = write(ends[1], address, 1) == 1;
  EXPECT_TRUE(readable || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return readable;
}
bool is_zero(const char* start, size_t bytes) {
  return std::all_of(start, start + bytes, [](char c) { return c == 0; });
}

// Not by mlock, which the sanitizers replace by nothing.
bool lock_in_memory(char* start, size_t bytes) { return syscall(SYS_mlock, start, bytes) == 0; }

class GuardsTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 4 * kGuardBytes;
  char* const start_ = static_cast<char*>(os::map(kBytes));
  char* const guard_ = start_ + kGuardBytes;

  GuardsTest() { memset(start_, 1, kBytes); }
  ~GuardsTest() override { os::unmap(start_, kBytes); }

  os::GuardKind add() {
    const os::GuardKind kind = os::add_guard(guard_, kGuardBytes, false);
    EXPECT_NE(kind, os::GuardKind::kNone);
    EXPECT_TRUE(is_readable(guard_ - 1));
    EXPECT_FALSE(is_readable(guard_));
    EXPECT_FALSE(is_readable(guard_ + kGuardBytes - 1));
    EXPECT_TRUE(is_readable(guard_ + kGuardBytes));
    return kind;
  }
  void remove(os::GuardKind kind) {
    ASSERT_TRUE(os::remove_guard(kind, guard_, kGuardBytes));
    ASSERT_TRUE(os::commit(start_, kBytes));
    EXPECT_TRUE(is_zero(guard_, kGuardBytes));
    memset(start_, 2, kBytes);
  }
};

TEST_F(GuardsTest, HoldUntilTheyAreRemoved) {
  for (int round = 0; round < 3; ++round) {
    const os::GuardKind kind = add();
    EXPECT_EQ(guard_[-1], round == 0 ? 1 : 2);
    remove(kind);
  }
}

TEST_F(GuardsTest, InLockedMemory) {
  if (!lock_in_memory(guard_, kGuardBytes)) GTEST_SKIP() << "nothing can be locked here";
  const os::GuardKind kind = add();
  EXPECT_EQ(kind, os::GuardKind::kMapped);
  remove(kind);
}

// It lies in two mappings, and only in the first of them can pages be marked.
TEST_F(GuardsTest, RefusedInTheMiddle) {
  if (!lock_in_memory(guard_ + kGuardBytes / 2, kGuardBytes / 2)) GTEST_SKIP() << "nothing can be locked here";
  const os::GuardKind kind = add();
  EXPECT_EQ(kind, os::GuardKind::kMapped);
  remove(kind);
}

TEST_F(GuardsTest, LockedWhenTheyAreThere) {
  const os::GuardKind kind = add();
  if (!lock_in_memory(start_, kGuardBytes)) GTEST_SKIP() << "nothing can be locked here";
  remove(kind);
}

// So many marks would take more memory than a mapping does.
TEST(LongGuardTest, IsAMapping) {
  constexpr size_t kLong = size_t{1} << 30;
  char* const start = static_cast<char*>(os::map(kLong));
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(os::add_guard(start, kLong, true), os::GuardKind::kMapped);
  EXPECT_FALSE(is_readable(start + kLong / 2));
  EXPECT_TRUE(os::remove_guard(os::GuardKind::kMapped, start, kLong));
  EXPECT_TRUE(os::commit(start, kLong));
  EXPECT_TRUE(is_readable(start + kLong / 2));
  os::unmap(start, kLong);
}

}  // namespace
}  // namespace annex
