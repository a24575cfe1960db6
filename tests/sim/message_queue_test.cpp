// The support core's queues: who goes first, and what they count.
#include "hardware/message_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace annex::sim {
namespace {

using Queue = MessageQueue<int>;

std::vector<int> take_all(Queue& queue, Cycles at) {
  std::vector<int> out;
  while (!queue.empty()) out.push_back(queue.take(at));
  return out;
}

TEST(MessageQueue, CoresHaveTheirTurns) {
  Queue queue(16, 3);
  for (const int request : {1, 2, 3}) queue.push(request, 0, 10);
  queue.push(4, 2, 10);
  queue.push(5, 1, 10);
  queue.push(6, 2, 10);
  EXPECT_EQ(take_all(queue, 20), (std::vector{1, 5, 4, 2, 6, 3}));
}

TEST(MessageQueue, TheTurnGoesOnFromTheLastThatHadOne) {
  Queue queue(16, 4);
  queue.push(1, 2, 0);
  EXPECT_EQ(queue.take(1), 1);
  for (const unsigned core : {0u, 1u, 2u, 3u}) queue.push(static_cast<int>(core), core, 2);
  EXPECT_EQ(take_all(queue, 3), (std::vector{3, 0, 1, 2}));
}

TEST(MessageQueue, WhatFindsItFullWaitsForRoomBeforeItHasItsTurn) {
  Queue queue(2, 2);
  queue.push(1, 0, 0);
  queue.push(2, 0, 0);
  EXPECT_TRUE(queue.full());
  queue.push(3, 1, 0);  // in memory: core 1's turn comes when there is room
  EXPECT_EQ(take_all(queue, 5), (std::vector{1, 3, 2}));
  EXPECT_EQ(queue.statistics().overflowed, 1u);
  EXPECT_EQ(queue.statistics().most, 3u);
}

TEST(MessageQueue, TheNumberThatWaitsOverTimeIsWhatTheyWaited) {
  Queue queue(16, 2);
  queue.push(1, 0, 10);
  queue.push(2, 1, 14);
  EXPECT_EQ(queue.take(20), 1);
  EXPECT_EQ(queue.statistics().waited, 10u);
  EXPECT_EQ(queue.statistics().area, 4u * 1 + 6 * 2);
  queue.push(3, 0, 12);  // told of late
  EXPECT_EQ(queue.take(25), 2);
  EXPECT_EQ(queue.take(30), 3);
  EXPECT_EQ(queue.statistics().waited, 10u + 11 + 18);
  EXPECT_EQ(queue.statistics().area, queue.statistics().waited);
}

}  // namespace
}  // namespace annex::sim
