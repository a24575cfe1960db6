#include "guest/scheduler.h"

#include <gtest/gtest.h>

#include <vector>

#include "fake_clock.h"

namespace annex::sim {
namespace {

constexpr Cycles kQuantum = 100;
constexpr Cycles kSlice = 1000;
constexpr Cycles kSwitch = 10;

struct Rig {
  explicit Rig(unsigned cores) : clock(cores, kSwitch), scheduler(cores, kQuantum, kSlice, clock) {}
  FakeClock clock;
  Scheduler scheduler;

  // Whoever is next runs for so long; returns who.
  unsigned run(Cycles cycles) {
    const unsigned thread = scheduler.next();
    if (thread != kNobody) clock.at[scheduler.core_of(thread)] += cycles;
    return thread;
  }
};

TEST(Scheduler, AloneAThreadRunsForEver) {
  Rig rig(1);
  rig.scheduler.add(0);
  EXPECT_EQ(rig.scheduler.next(), 0u);
  EXPECT_EQ(rig.scheduler.run_until(), kNever);
}

TEST(Scheduler, TheCoreThatIsBehindRunsAndAtMostAQuantumAhead) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  EXPECT_NE(rig.scheduler.core_of(0), rig.scheduler.core_of(1));
  EXPECT_EQ(rig.run(100), 0u);
  EXPECT_EQ(rig.scheduler.run_until(), kQuantum);
  EXPECT_EQ(rig.run(250), 1u);
  EXPECT_EQ(rig.scheduler.run_until(), 100 + kQuantum);
  EXPECT_EQ(rig.run(100), 0u);
  EXPECT_EQ(rig.run(100), 0u);
  EXPECT_EQ(rig.run(1), 1u);
}

TEST(Scheduler, SaysUntilWhenACoreIsTheFurthestBehind) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  EXPECT_EQ(rig.run(20), 0u);
  EXPECT_EQ(rig.scheduler.first_until(), 1u);  // the other is as far behind: what must not wait still goes on
  EXPECT_EQ(rig.run(50), 1u);
  EXPECT_EQ(rig.scheduler.first_until(), 20u);
  EXPECT_EQ(rig.run(70), 0u);
  EXPECT_EQ(rig.scheduler.first_until(), 50u);
  EXPECT_EQ(rig.scheduler.run_until(), 50 + kQuantum);
}

TEST(Scheduler, ANewThreadLimitsTheLeadOfTheOneThatStartedIt) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.run(10);
  ASSERT_EQ(rig.scheduler.run_until(), kNever);
  rig.scheduler.add(30);
  EXPECT_EQ(rig.scheduler.run_until(), 30 + kQuantum);
  EXPECT_EQ(rig.scheduler.first_until(), 30u);
}

TEST(Scheduler, ThreadsOfOneCoreTakeTurnsByTheSlice) {
  Rig rig(1);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  EXPECT_EQ(rig.run(kSlice / 2), 0u);
  EXPECT_EQ(rig.run(kSlice / 2), 0u);
  EXPECT_EQ(rig.run(kSlice), 1u);
  EXPECT_EQ(rig.run(1), 0u);
  EXPECT_EQ(rig.clock.at[0], 2 * kSlice + 1 + 2 * kSwitch);
}

TEST(Scheduler, ASleeperIsWokenAtItsTimeOrBefore) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  ASSERT_EQ(rig.run(10), 0u);
  rig.scheduler.sleep(0, 500);
  ASSERT_EQ(rig.run(50), 1u);
  EXPECT_EQ(rig.scheduler.run_until(), 500 + kQuantum);
  rig.scheduler.wake(0, 60);
  EXPECT_EQ(rig.run(1), 1u);
  EXPECT_EQ(rig.run(10), 1u);
  EXPECT_EQ(rig.run(10), 0u);
  EXPECT_FALSE(rig.scheduler.timed_out(0));
  rig.scheduler.next();
  const unsigned running = rig.scheduler.running();
  rig.scheduler.sleep(running, 1000);
  rig.scheduler.next();
  rig.scheduler.sleep(1 - running, kNever);
  EXPECT_EQ(rig.scheduler.next(), running);  // nobody else: time passes
  EXPECT_TRUE(rig.scheduler.timed_out(running));
  EXPECT_GE(rig.clock.at[rig.scheduler.core_of(running)], 1000u);
}

TEST(Scheduler, WakingWhoeverIsAwakeChangesNothing) {
  Rig rig(1);
  rig.scheduler.add(0);
  rig.scheduler.next();
  rig.scheduler.wake(0, 5);
  EXPECT_EQ(rig.scheduler.next(), 0u);
  rig.scheduler.remove(0);
  EXPECT_EQ(rig.scheduler.next(), kNobody);
}

TEST(Scheduler, NobodyRunsWhileTheOnlyThreadIsAway) {
  Rig rig(1);
  rig.scheduler.add(0);
  rig.scheduler.next();
  rig.scheduler.leave(0);
  EXPECT_EQ(rig.scheduler.next(), kNobody);
  rig.scheduler.wake(0, 70);
  EXPECT_EQ(rig.scheduler.next(), 0u);
  EXPECT_EQ(rig.clock.at[0], 70u);
}

TEST(Scheduler, WhoIsAwayIsWaitedForBeforeOthersTimesAreOver) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  rig.scheduler.next();
  rig.scheduler.sleep(0, 5000);
  EXPECT_EQ(rig.run(40), 1u);
  rig.scheduler.leave(1);
  EXPECT_EQ(rig.scheduler.next(), kNobody);
  rig.scheduler.wake(1, 60);
  EXPECT_EQ(rig.run(10), 1u);
  EXPECT_EQ(rig.clock.at[rig.scheduler.core_of(1)], 70u);
  rig.scheduler.leave(1);
  EXPECT_EQ(rig.scheduler.next(), kNobody);
  EXPECT_EQ(rig.scheduler.next(true), 0u);
  EXPECT_EQ(rig.clock.at[rig.scheduler.core_of(0)], 5000u);
}

TEST(Scheduler, ACoreIsBusyWhileAThreadIsOnIt) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.next();
  EXPECT_TRUE(rig.scheduler.busy(0, 0));
  EXPECT_FALSE(rig.scheduler.busy(1, 0));
  rig.scheduler.add(50);
  EXPECT_FALSE(rig.scheduler.busy(1, 49));  // on its way
  EXPECT_TRUE(rig.scheduler.busy(1, 50));
  rig.scheduler.sleep(0, kNever);
  EXPECT_FALSE(rig.scheduler.busy(0, 50));
}

TEST(Scheduler, AnIdleCoreTakesAThreadFromALongQueue) {
  Rig rig(2);
  for (int i = 0; i < 3; ++i) rig.scheduler.add(0);
  EXPECT_EQ(rig.scheduler.core_of(0), rig.scheduler.core_of(2));
  while (rig.scheduler.next() != 1) rig.clock.at[rig.scheduler.core_of(rig.scheduler.running())] += 150;
  rig.scheduler.remove(1);
  rig.scheduler.next();
  EXPECT_NE(rig.scheduler.core_of(0), rig.scheduler.core_of(2));
}

TEST(Scheduler, AThreadThatYieldsGoesBehindTheOthersOfItsCore) {
  Rig rig(1);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  EXPECT_EQ(rig.run(10), 0u);
  rig.scheduler.yield(0);
  EXPECT_EQ(rig.run(10), 1u);
}

TEST(Scheduler, WhoIsHeldKeepsItsCoreAndItsTime) {
  Rig rig(2);
  rig.scheduler.add(0);
  rig.scheduler.add(0);
  EXPECT_EQ(rig.run(10), 0u);
  rig.scheduler.hold(0, 500);
  EXPECT_EQ(rig.run(300), 1u);
  EXPECT_EQ(rig.run(300), 1u);  // at 600, when nobody is behind 500
  EXPECT_EQ(rig.scheduler.next(), 0u);
  EXPECT_EQ(rig.clock.at[0], 10u);
  EXPECT_EQ(rig.scheduler.core_of(0), 0u);
}

}  // namespace
}  // namespace annex::sim
