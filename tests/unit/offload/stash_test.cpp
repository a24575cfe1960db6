// A stash hands over each handful once, class by class, while it is being filled.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "support/client.h"

namespace annex::support {
namespace {

Handful handful(uint64_t i) { return {reinterpret_cast<char*>(i * 4096), i + 1}; }

TEST(Stash, HandsOverEachHandfulOnce) {
  const auto stash = std::make_unique<Stash>();
  constexpr uint64_t kHandfuls = 200000;
  std::thread filler([&] {
    for (uint64_t next = 0; next < kHandfuls;) {
      if (stash->level(3) == kStashSlots) {
        std::this_thread::yield();
      } else {
        stash->put(3, handful(next++));
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
  EXPECT_EQ(stash->level(3), 0u);
  EXPECT_EQ(stash->taken(3), kHandfuls);
  EXPECT_EQ(stash->taken(4), 0u);
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
    EXPECT_LE(widest_limit(c) * block_size(c), 262144u);
  }
}

}  // namespace
}  // namespace annex::support
