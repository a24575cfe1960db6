// A stash hands over each handful once, class by class, while it is being filled.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/client.h"

namespace annex::support {
namespace {

Handful handful(uint64_t i) { return {reinterpret_cast<char*>(i * 4096), i + 1}; }

TEST(Stash, HandsOverEachHandfulOnce) {
  const auto stash = std::make_unique<Stash>();
  constexpr uint64_t kHandfuls = 200000;
  std::thread filler([&] {
    for (uint64_t next = 0; next < kHandfuls;) {
      if (stash->misses(3, kStashSlots, 1)) {
        stash->put(3, handful(next++));
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t expected = 0; expected < kHandfuls;) {
    const Handful got = stash->take(3);
    if (got.mask == 0) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(got.mask, expected + 1);
    ASSERT_EQ(got.first, handful(expected).first);
    ++expected;
  }
  filler.join();
  EXPECT_EQ(stash->missing(3, kStashSlots), kStashSlots);
  EXPECT_EQ(stash->take(4).mask, 0u);
}

TEST(Stash, KnowsWhatIsMissing) {
  const auto stash = std::make_unique<Stash>();
  for (uint64_t next = 0; next < 100; ++next) {
    EXPECT_EQ(stash->missing(5, 8), 8u);
    EXPECT_TRUE(stash->misses(5, 8, 8));
    for (uint64_t i = 0; i < 8; ++i) stash->put(5, handful(8 * next + i));
    EXPECT_EQ(stash->missing(5, 8), 0u);
    EXPECT_EQ(stash->missing(5, 12), 4u);
    EXPECT_EQ(stash->missing(5, 4), 0u);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(stash->take(5).first, handful(8 * next + i).first);
    EXPECT_EQ(stash->missing(5, 8), 3u);
    EXPECT_TRUE(stash->misses(5, 8, 3));
    EXPECT_FALSE(stash->misses(5, 8, 4));
    while (stash->take(5).mask != 0) {
    }
  }
}

TEST(Handful, SpreadsOutToItsBlocksTheLowestLast) {
  for (const uint64_t mask : {uint64_t{1}, uint64_t{0x8000000000000001}, uint64_t{0xf0}, ~uint64_t{0}}) {
    const Handful some = {reinterpret_cast<char*>(0x10000), mask};
    void* out[64];
    uint32_t count = spread(some, class_of(48), out);
    ASSERT_EQ(count, some.count());
    for (uint32_t i = 0; i < 64; ++i) {
      if ((mask >> i & 1) != 0) {
        EXPECT_EQ(out[--count], some.first + i * 48);
      }
    }
    EXPECT_EQ(count, 0u);
  }
  EXPECT_EQ(spread(Handful{}, 0, nullptr), 0u);
}

TEST(Stash, LimitsFollowTheSizeOfBlocks) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    EXPECT_LE(handful_of(c), usual_limit(c));
    EXPECT_LE(usual_limit(c), widest_limit(c));
    EXPECT_GE(stash_limit(c), 2u);
    EXPECT_LE(stash_limit(c), kStashSlots);
    EXPECT_LE(widest_limit(c) * block_size(c), 1048576u);
  }
}

}  // namespace
}  // namespace annex::support
