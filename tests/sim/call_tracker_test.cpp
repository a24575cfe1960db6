#include "guest/call_tracker.h"

#include <gtest/gtest.h>

namespace annex::sim {
namespace {

struct CallTrackerTest : testing::Test {
  CallTracker calls;
  std::array<CallStatistics, 5> statistics{};

  const CallStatistics& of(Function function) { return statistics[static_cast<size_t>(function)]; }
};

TEST_F(CallTrackerTest, FromEntryToTheReturnThatTakesItsOwnSlot) {
  calls.call(0x1000);
  calls.enter(Function::kAllocate, 50, 0, 10);
  calls.call(0xff0);  // it calls something
  EXPECT_FALSE(calls.returned(0xff0));
  EXPECT_TRUE(calls.inside());
  EXPECT_TRUE(calls.returned(0x1000));
  calls.leave(80, 4, 25, statistics);
  EXPECT_FALSE(calls.inside());
  EXPECT_EQ(of(Function::kAllocate).calls, 1u);
  EXPECT_EQ(of(Function::kAllocate).cycles, 30u);
  EXPECT_EQ(of(Function::kAllocate).instructions, 15u);
  EXPECT_EQ(of(Function::kAllocate).kernel_cycles, 4u);
  EXPECT_EQ(of(Function::kAllocate).lengths.by_powers()[5], 1u);  // 26 are in [16, 32)
}

// A caller that has called others before, and enters by a jump: the slot is that of its own call.
TEST_F(CallTrackerTest, ATailCall) {
  calls.call(0x1000);
  calls.call(0xff0);
  EXPECT_FALSE(calls.returned(0xff0));
  calls.enter(Function::kFree, 0, 0, 0);
  calls.call(0xfe8);
  EXPECT_FALSE(calls.returned(0xfe8));
  EXPECT_TRUE(calls.returned(0x1000));
}

// longjmp and exceptions leave it without its own return.
TEST_F(CallTrackerTest, AReturnFromAboveLeavesItToo) {
  calls.call(0x2000);
  calls.call(0x1000);
  calls.enter(Function::kAllocate, 0, 0, 0);
  calls.call(0xff0);
  EXPECT_TRUE(calls.returned(0x2000));
}

TEST_F(CallTrackerTest, ShortCallsAreCountedApart) {
  for (Cycles took : {20, 99, 100, 5000}) {
    calls.call(0x1000);
    calls.enter(Function::kAllocate, 1000, 0, 0);
    ASSERT_TRUE(calls.returned(0x1000));
    calls.leave(1000 + took, 0, 0, statistics);
  }
  EXPECT_EQ(of(Function::kAllocate).cycles, 5219u);
  EXPECT_EQ(of(Function::kAllocate).lengths.cycles_below(100), 119u);
}

TEST(CallLengthsTest, EachLengthByItselfBelow128AndEightStepsForEveryPowerOfTwoBeyond) {
  CallLengths lengths;
  for (Cycles took : {0, 13, 13, 127, 128, 143, 144, 255, 256, 5000}) lengths.add(took);
  std::vector<std::array<uint64_t, 3>> found;
  lengths.each([&](Cycles below, const CallLengths::Bin& bin) { found.push_back({below, bin.calls, bin.cycles}); });
  const std::vector<std::array<uint64_t, 3>> expected = {
      {1, 1, 0},     {14, 2, 26},   {128, 1, 127}, {144, 2, 128 + 143},
      {160, 1, 144}, {256, 1, 255}, {288, 1, 256}, {5120, 1, 5000},
  };
  EXPECT_EQ(found, expected);
}

TEST(CallLengthsTest, NoCallIsTooLong) {
  CallLengths lengths;
  lengths.add(~Cycles{0});
  lengths.each([](Cycles, const CallLengths::Bin& bin) { EXPECT_EQ(bin.calls, 1u); });
}

}  // namespace
}  // namespace annex::sim
