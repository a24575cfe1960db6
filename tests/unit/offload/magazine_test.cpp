// A magazine: what is freed comes back the youngest first, nothing is lost between the stacks, and malloc sees where
// nothing is ready.
#include "support/magazine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace annex::support {
namespace {

constexpr SizeClass kClass = 0;
constexpr uint32_t kRoom = 256;

class MagazineTest : public testing::Test {
 protected:
  void SetUp() override { magazine.move(first.data() + 1, second.data() + 1, kRoom); }

  void put(uintptr_t from, uintptr_t count) {
    for (uintptr_t i = from; i < from + count; ++i) *magazine.returned++ = reinterpret_cast<void*>(i);
  }
  // As malloc does; 0 where nothing is ready.
  uintptr_t take() {
    if (magazine.ready[-1] == nullptr) return 0;
    return reinterpret_cast<uintptr_t>(*--magazine.ready);
  }

  std::vector<void*> first = std::vector<void*>(kRoom + 1);
  std::vector<void*> second = std::vector<void*>(kRoom + 1);
  Magazine magazine;
};

TEST_F(MagazineTest, ClosedHasNoRoom) {
  Magazine closed;
  EXPECT_TRUE(closed.full());
  EXPECT_EQ(closed.count(), 0u);
  EXPECT_EQ(closed.ready[-1], nullptr);
  closed.lift_floor();
}

TEST_F(MagazineTest, EmptyHasNothingReady) {
  EXPECT_EQ(take(), 0u);
  EXPECT_FALSE(magazine.lower_floor(kClass));
  EXPECT_FALSE(magazine.turn_over(kClass));
  EXPECT_EQ(magazine.room(), kRoom);
}

TEST_F(MagazineTest, TheYoungestIsReadyFirstAndTheRestWaits) {
  const uintptr_t window = usual_limit(kClass);
  put(1, kRoom);
  EXPECT_TRUE(magazine.full());
  EXPECT_TRUE(magazine.turn_over(kClass));
  EXPECT_EQ(magazine.count(), kRoom);
  for (uintptr_t i = 0; i < window; ++i) EXPECT_EQ(take(), kRoom - i);
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(magazine.count(), kRoom - window);
  EXPECT_TRUE(magazine.lower_floor(kClass));
  EXPECT_EQ(take(), kRoom - window);
}

TEST_F(MagazineTest, BlocksBelowTheFloorComeBackWithTheirStack) {
  put(1, kRoom);
  magazine.turn_over(kClass);
  put(kRoom + 1, 10);
  magazine.turn_over(kClass);
  for (uintptr_t i = 0; i < 10; ++i) EXPECT_EQ(take(), kRoom + 10 - i);
  EXPECT_EQ(magazine.count_returned(), kRoom);
  for (uintptr_t i = 0; i < kRoom; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(magazine.returned_base[i]), i + 1);
}

TEST_F(MagazineTest, MovesWithWhatWasReturned) {
  put(1, 10);
  std::vector<void*> one(2 * kRoom + 1), other(2 * kRoom + 1);
  magazine.move(one.data() + 1, other.data() + 1, 2 * kRoom);
  EXPECT_EQ(magazine.room(), 2 * kRoom);
  EXPECT_TRUE(magazine.turn_over(kClass));
  for (uintptr_t i = 10; i > 0; --i) EXPECT_EQ(take(), i);
}

TEST_F(MagazineTest, LosesNothing) {
  std::set<uintptr_t> out;
  uintptr_t next = 1;
  uint32_t random = 1;
  for (int step = 0; step < 200000; ++step) {
    random = random * 1664525 + 1013904223;
    const uint32_t what = random >> 16;
    if (what % 8 == 0) {
      what % 16 == 0 ? magazine.turn_over(kClass) : magazine.lower_floor(kClass);
    } else if ((what & 1024) != 0) {
      if (const uintptr_t block = take()) {
        ASSERT_TRUE(out.insert(block).second);
      }
    } else if (!magazine.full()) {
      const uintptr_t block = out.empty() ? next++ : *out.begin();
      out.erase(block);
      put(block, 1);
    }
    ASSERT_EQ(magazine.count() + out.size(), next - 1);
  }
}

}  // namespace
}  // namespace annex::support
