// The scheduler itself: it tries every order, each once, and sees what goes wrong in one of them.
#include "unit/remote/scheduler.h"

#include <gtest/gtest.h>

#include <map>

#include "remote/steps.h"

namespace annex::test {
namespace {

constexpr auto kOrder = std::memory_order_seq_cst;

struct LostUpdate : Scheduler::Scenario {
  explicit LostUpdate(std::map<uint32_t, int>* results) : results(results) {}
  std::vector<Scheduler::Thread> threads() override {
    const auto add_one = [this] { number.store(number.load(kOrder) + 1, kOrder); };
    return {{"first", add_one}, {"second", add_one}};
  }
  void check() override { ++(*results)[number.load(kOrder)]; }

  remote::Atomic<uint32_t> number{0};
  std::map<uint32_t, int>* results;
};

TEST(Scheduler, TriesEveryOrderThatDiffersOnce) {
  std::map<uint32_t, int> results;
  const Scheduler::Outcome outcome = Scheduler::explore([&] { return new LostUpdate(&results); });
  EXPECT_EQ(outcome.failure, "");
  // Of the six orders of four steps, the two loads may change places in two pairs: four differ.
  EXPECT_EQ(outcome.orders, 4u);
  EXPECT_EQ(results[2], 2);
  EXPECT_EQ(results[1], 2);
}

struct CrossedLocks : Scheduler::Scenario {
  std::vector<Scheduler::Thread> threads() override {
    return {{"one way", [this] { in_turn(&a, &b); }}, {"the other", [this] { in_turn(&b, &a); }}};
  }
  static void in_turn(remote::Lock* outer, remote::Lock* inner) {
    remote::Guard first(*outer);
    remote::Guard second(*inner);
  }
  void check() override {}

  remote::Lock a, b;
};

TEST(Scheduler, SeesThreadsThatWaitForEachOther) {
  const Scheduler::Outcome outcome = Scheduler::explore([] { return new CrossedLocks; });
  EXPECT_NE(outcome.failure.find("the threads that are left wait for each other"), std::string::npos);
  EXPECT_NE(outcome.failure.find("[the other] takes the lock"), std::string::npos) << "no trace:\n" << outcome.failure;
}

struct Locked : Scheduler::Scenario {
  std::vector<Scheduler::Thread> threads() override {
    const auto add_one = [this] {
      remote::Guard guard(lock);
      number.store(number.load(kOrder) + 1, kOrder);
    };
    return {{"first", add_one}, {"second", add_one}, {"third", add_one}};
  }
  void check() override {
    if (number.load(kOrder) != 3) Scheduler::fail("an update was lost");
  }

  remote::Lock lock;
  remote::Atomic<uint32_t> number{0};
};

TEST(Scheduler, ALockedPartIsOneStep) {
  const Scheduler::Outcome outcome = Scheduler::explore([] { return new Locked; });
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.orders, 6u);
}

}  // namespace
}  // namespace annex::test
