#include "guest/futexes.h"

#include <gtest/gtest.h>

#include <vector>

namespace annex::sim {
namespace {

using Woken = std::vector<unsigned>;

struct FutexesTest : testing::Test {
  Futexes futexes;
  Woken woken;

  uint32_t wake(Address word, uint32_t most, uint32_t bits = Futexes::kAnyBit) {
    return futexes.wake(word, bits, most, [this](unsigned thread) { woken.push_back(thread); });
  }
};

TEST_F(FutexesTest, WakesThoseOfTheWordFirstComeFirstServed) {
  for (unsigned thread : {3, 1, 2}) futexes.wait(thread, 0x100, 7, Futexes::kAnyBit);
  futexes.wait(9, 0x200, 7, Futexes::kAnyBit);
  EXPECT_EQ(wake(0x100, 2), 2u);
  EXPECT_EQ(woken, (Woken{3, 1}));
  EXPECT_EQ(wake(0x100, 5), 1u);
  EXPECT_EQ(woken, (Woken{3, 1, 2}));
  EXPECT_EQ(wake(0x100, 5), 0u);
}

TEST_F(FutexesTest, BitsMustMeet) {
  futexes.wait(1, 0x100, 0, 0b01);
  futexes.wait(2, 0x100, 0, 0b10);
  EXPECT_EQ(wake(0x100, 5, 0b10), 1u);
  EXPECT_EQ(woken, (Woken{2}));
}

TEST_F(FutexesTest, RequeuedWaitersWaitForTheOtherWord) {
  for (unsigned thread : {1, 2, 3}) futexes.wait(thread, 0x100, 0, Futexes::kAnyBit);
  futexes.requeue(0x100, 0x200, 2);
  EXPECT_EQ(wake(0x200, 9), 2u);
  EXPECT_EQ(wake(0x100, 9), 1u);
  EXPECT_EQ(woken, (Woken{1, 2, 3}));
}

TEST_F(FutexesTest, AWordThatChangedWithoutAWakeUp) {
  futexes.wait(1, 0x100, 5, Futexes::kAnyBit);
  futexes.wait(2, 0x200, 6, Futexes::kAnyBit);
  futexes.wake_changed([](Address, uint32_t expected) { return expected == 6; },
                       [this](unsigned thread) { woken.push_back(thread); });
  EXPECT_EQ(woken, (Woken{2}));
}

TEST_F(FutexesTest, WhoeverIsForgottenIsNotWoken) {
  futexes.wait(1, 0x100, 0, Futexes::kAnyBit);
  futexes.forget(1);
  EXPECT_EQ(wake(0x100, 1), 0u);
}

}  // namespace
}  // namespace annex::sim
