// A ring delivers everything once, in order, whoever is faster.
#include "support/ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace annex::support {
namespace {

TEST(Ring, TakesWhatThereIsRoomFor) {
  Ring<int, 8> ring;
  const int values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  int out[10] = {};
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.pop(out, 10), 0u);
  EXPECT_EQ(ring.push(values, 10), 8u);
  EXPECT_EQ(ring.push(values, 1), 0u);
  EXPECT_EQ(ring.pop(out, 3), 3u);
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(ring.push(values, 10), 3u);
  EXPECT_EQ(ring.pop(out, 10), 5u);  // what was known of; a second look finds the rest
  EXPECT_EQ(ring.pop(out, 10), 3u);
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(ring.empty());
}

TEST(Ring, DeliversOnceAndInOrder) {
  static Ring<uint32_t, 64> ring;
  constexpr uint32_t kValues = 300000;
  std::thread producer([] {
    uint32_t next = 0;
    while (next < kValues) {
      uint32_t batch[7];
      uint32_t count = 0;
      for (; count < 7 && next + count < kValues; ++count) batch[count] = next + count;
      next += ring.push(batch, count);
      if (next % 5 == 0) std::this_thread::yield();
    }
  });
  uint32_t expected = 0;
  while (expected < kValues) {
    uint32_t out[11];
    const uint32_t count = ring.pop(out, 11);
    if (count == 0) std::this_thread::yield();
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(out[i], expected++);
  }
  producer.join();
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace annex::support
