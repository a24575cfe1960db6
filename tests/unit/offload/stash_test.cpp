// A stash hands over each batch once, class by class, while it is being filled.
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "support/client.h"

namespace annex::support {
namespace {

Batch batch(uint64_t i) { return {reinterpret_cast<char*>(i * 4096), i + 1}; }

TEST(Stash, HandsOverEachHandfulOnce) {
  const auto stash = std::make_unique<Stash>();
  constexpr uint64_t kHandfuls = 200000;
  std::thread filler([&] {
    for (uint64_t next = 0; next < kHandfuls;) {
      stash->held(3);
      if (!stash->full(3)) {
        stash->put(3, batch(next++));
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t expected = 0; expected < kHandfuls;) {
    const Batch got = stash->take(3);
    if (got.mask == 0) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(got.mask, expected + 1);
    ASSERT_EQ(got.first, batch(expected).first);
    ++expected;
  }
  filler.join();
  EXPECT_EQ(stash->held(3), 0u);
  EXPECT_EQ(stash->take(4).mask, 0u);
}

TEST(Stash, KnowsWhatItHolds) {
  const auto stash = std::make_unique<Stash>();
  for (uint64_t round = 0; round < 100; ++round) {
    EXPECT_EQ(stash->held(5), 0u);
    EXPECT_TRUE(stash->needs_refill(5));
    for (uint32_t i = 0; i < 8; ++i) stash->put(5, {reinterpret_cast<char*>(4096), 1, i});
    EXPECT_EQ(stash->held(5), 8 + 28u);
    EXPECT_FALSE(stash->needs_refill(5));
    EXPECT_EQ(stash->take(5).more, 0u);
    EXPECT_EQ(stash->take(5).more, 1u);
    EXPECT_FALSE(stash->needs_refill(5));
    EXPECT_EQ(stash->take(5).more, 2u);
    EXPECT_TRUE(stash->needs_refill(5));
    EXPECT_EQ(stash->held(5), 5 + 25u);
    EXPECT_FALSE(stash->needs_refill(5));
    while (stash->take(5).mask != 0) {
    }
  }
}

TEST(Stash, IsFullWithSoManyHandfuls) {
  const auto stash = std::make_unique<Stash>();
  for (uint64_t i = 0; i < kStashSlots; ++i) {
    EXPECT_FALSE(stash->full(7));
    stash->put(7, batch(i));
  }
  EXPECT_TRUE(stash->full(7));
  stash->take(7);
  stash->held(7);
  EXPECT_FALSE(stash->full(7));
}

TEST(Batch, SpreadsOutToItsBlocksTheLowestLast) {
  for (const uint64_t mask : {uint64_t{1}, uint64_t{0x8000000000000001}, uint64_t{0xf0}, ~uint64_t{0}}) {
    const Batch some = {reinterpret_cast<char*>(0x10000), mask};
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
  EXPECT_EQ(spread(Batch{}, 0, nullptr), 0u);
}

TEST(Batch, IsSplitIntoPartsThatAMagazineHolds) {
  for (const SizeClass c : {class_of(16), class_of(48), class_of(1024), class_of(8192)}) {
    for (const Batch whole : {Batch{reinterpret_cast<char*>(0x10000), 1, 0},
                              Batch{reinterpret_cast<char*>(0x10000), 0xf0f0f0f0f0f0f0f0, 1000},
                              Batch{reinterpret_cast<char*>(0x10000), ~uint64_t{0}, 64 + 63}}) {
      std::vector<void*> expected;
      for (uint32_t i = 0; i < kWord + whole.more; ++i) {
        if (i >= kWord || (whole.mask >> i & 1) != 0) expected.push_back(whole.first + i * block_size(c));
      }
      std::vector<void*> got;
      for (Batch rest = whole; rest.mask != 0;) {
        void* part[kLargestPart];
        const uint32_t count = spread(rest.split(c), c, part);
        ASSERT_GE(count, 1u);
        ASSERT_LE(count, std::min(kLargestPart, usual_limit(c)));
        got.insert(got.end(), std::make_reverse_iterator(part + count), std::make_reverse_iterator(part));
      }
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(Stash, LimitsFollowTheSizeOfBlocks) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    EXPECT_LE(batch_of(c), usual_limit(c));
    EXPECT_LE(usual_limit(c), widest_limit(c));
    EXPECT_GE(stash_limit(c), 2 * batch_of(c));
    EXPECT_LE(stash_limit(c), UINT16_MAX);  // as a client's target
    EXPECT_LE(widest_limit(c) * block_size(c), 1048576u);
  }
}

}  // namespace
}  // namespace annex::support
