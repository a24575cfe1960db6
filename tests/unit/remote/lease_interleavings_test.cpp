// A heap that is taken from its owner, in every order of the steps of the owner's fast and slow paths and of whoever
// takes it: what must hold is in lease_world.cpp. And faults put into what that does in the library's place, each of
// which must be found; those in the library's part are mutants (CMakeLists.txt).
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "unit/remote/lease_world.h"

namespace annex::test {
namespace {

// What is free at the start, and where.
struct Start {
  std::string ready;
  std::string freed;
};
const std::vector<Start> kStarts = {
    {"123", "4"},   // one page becomes a hole, of both lists; a block of each page stays
    {"1342", "5"},  // one of the ready list alone, and its last block is kept
    {"12", "43"},   // one of what was freed
    {"", "342"},    // the same, and nothing is ready
    {"4", "126"},   // the same, and a block is, which stays there
    {"2", "3"},     // none
};

const LeaseProgram kTake = {"take"};
const LeaseProgram kTakeTwice = {"take", "take"};

// What an owner may do.
const std::vector<LeaseProgram> kOwners = {
    {"malloc"},
    {"free"},
    {"settle"},
    {"leave"},
    {"malloc", "malloc"},
    {"malloc", "free"},
    {"free", "malloc"},
    {"free", "free"},
    {"settle", "malloc"},
    {"malloc", "settle"},
    {"free", "settle"},
    {"malloc", "leave"},
    {"free", "leave"},
    {"settle", "settle"},
    {"jump", "settle"},
    {"jump", "malloc", "settle"},
    {"malloc", "malloc", "malloc"},
    {"free", "free", "malloc"},
    {"malloc", "free", "malloc"},
    {"free", "malloc", "free"},
};
// The same where there are two takers, and so many more orders.
const std::vector<LeaseProgram> kOwnersOfThree = {
    {"malloc"}, {"free"}, {"settle"}, {"leave"}, {"malloc", "settle"}, {"free", "malloc"},
};
// One that ends without a word, and whose heap nobody has again.
const std::vector<LeaseProgram> kVanishing = {
    {"vanish"}, {"malloc", "vanish"}, {"free", "vanish"}, {"settle", "vanish"}, {"malloc", "settle", "vanish"},
};
// One that leaves, and the next one.
const std::vector<LeaseProgram> kLeaving = {{"leave"}, {"malloc", "leave"}, {"free", "leave"}};
const std::vector<LeaseProgram> kNext = {{"start"}, {"start", "malloc"}, {"start", "free"}};

class Tries {
 public:
  ~Tries() { printf("%lu plans, %lu orders\n", plans_, orders_); }

  // Tries every order of a plan; what is wrong in one.
  std::string of(const LeasePlan& plan) {
    const Scheduler::Outcome outcome = Scheduler::explore([&] { return make_lease_world(plan); });
    ++plans_;
    orders_ += outcome.orders;
    return outcome.failure;
  }
  void expect_to_hold(const LeasePlan& plan) {
    if (testing::Test::HasFailure()) return;  // one is enough to read
    const std::string failure = of(plan);
    EXPECT_EQ(failure, "") << "ready: " << plan.ready << ", freed: " << plan.freed;
  }

 private:
  uint64_t plans_ = 0;
  uint64_t orders_ = 0;
};

TEST(Lease, WhereTheKernelHasNoBarrier) {
  Tries tries;
  for (const LeaseProgram& owner : kOwnersOfThree) {
    LeasePlan plan = {kStarts[0].ready, kStarts[0].freed, {owner, kTakeTwice}};
    plan.has_barrier = false;
    tries.expect_to_hold(plan);
    plan.programs = {owner, kTake, kTake};
    tries.expect_to_hold(plan);
  }
}

TEST(Lease, OfAnOwnerThatVanishes) {
  Tries tries;
  for (const LeaseProgram& owner : kVanishing) {
    tries.expect_to_hold({kStarts[0].ready, kStarts[0].freed, {owner, kTakeTwice}});
    tries.expect_to_hold({kStarts[0].ready, kStarts[0].freed, {owner, kTake, kTake}});
  }
}

TEST(Lease, OfAnOwnerAndATaker) {
  Tries tries;
  for (const Start& start : kStarts) {
    for (const LeaseProgram& owner : kOwners) {
      LeasePlan plan = {start.ready, start.freed, {owner, kTake}};
      tries.expect_to_hold(plan);
      plan.counts_first = true;
      tries.expect_to_hold(plan);
    }
  }
}

TEST(Lease, OfAnOwnerAndOneWhoTakesTwice) {
  Tries tries;
  for (const Start& start : kStarts) {
    for (const LeaseProgram& owner : kOwners) {
      if (owner.size() < 3) tries.expect_to_hold({start.ready, start.freed, {owner, kTakeTwice}});
    }
  }
}

TEST(Lease, OfAnOwnerAndTwoTakers) {
  Tries tries;
  for (const Start& start : kStarts) {
    for (const LeaseProgram& owner : kOwnersOfThree)
      tries.expect_to_hold({start.ready, start.freed, {owner, kTake, kTake}});
  }
}

TEST(Lease, OfTwoOwnersAndATaker) {
  Tries tries;
  for (const Start& start : kStarts) {
    for (const LeaseProgram& owner : kLeaving) {
      for (const LeaseProgram& next : kNext) tries.expect_to_hold({start.ready, start.freed, {owner, next, kTake}});
    }
  }
}

struct Seeded {
  const char* name;
  LeasePlan plan;
  const char* finds;
};

void PrintTo(const Seeded& seeded, std::ostream* out) { *out << seeded.name; }

class LeaseFaults : public testing::TestWithParam<Seeded> {};

TEST_P(LeaseFaults, AreFound) {
  const std::string failure = Tries().of(GetParam().plan);
  EXPECT_NE(failure.find(std::string("WRONG: ") + GetParam().finds), std::string::npos) << failure;
}

Seeded seeded(const char* name, LeaseFault fault, Start start, LeaseProgram owner, const char* finds) {
  LeasePlan plan = {start.ready, start.freed, {std::move(owner), kTake}};
  plan.fault = fault;
  plan.has_barrier = fault != LeaseFault::kGoesOnWithoutTheBarrier;
  return {name, plan, finds};
}

INSTANTIATE_TEST_SUITE_P(
    Seeded, LeaseFaults,
    testing::Values(
        seeded("TakesTheFirstToo", LeaseFault::kTakesTheFirstToo, {"12", ""}, {"malloc"},
               "block 1 was handed out, and lies in a hole"),
        seeded("DoesNotLookAgain", LeaseFault::kDoesNotLookAgain, {"123", "4"}, {"malloc"},
               "a list leads to what a program has written"),
        seeded("OverwritesWhatIsFreed", LeaseFault::kOverwritesWhatIsFreed, {"123", "4"}, {"free"}, "block 5 is lost"),
        seeded("LeavesTheListAsItIs", LeaseFault::kLeavesTheListAsItIs, {"", "34"}, {"malloc"},
               "block 3 was handed out, and lies in a hole"),
        seeded("Counts", LeaseFault::kCounts, {"123", "4"}, {"free"}, "the number of blocks in use is wrong"),
        seeded("LinksTooLate", LeaseFault::kLinksTooLate, {"123", "4"}, {"free"},
               "a list leads to what a program has written"),
        seeded("MarksTooEarly", LeaseFault::kMarksTooEarly, {"123", "4"}, {"malloc"},
               "a list leads to what a program has written"),
        seeded("ForgetsTheLateFree", LeaseFault::kForgetsTheLateFree, {"123", "4"}, {"free"}, "block 5 is lost"),
        seeded("ForgetsTheLateMalloc", LeaseFault::kForgetsTheLateMalloc, {"134", "2"}, {"malloc", "malloc"},
               "block 3 was handed out, and lies in a hole"),
        seeded("LeavesWithoutTheLock", LeaseFault::kLeavesWithoutTheLock, {"123", "4"}, {"leave"},
               "somebody wrote to the variables of a thread that has no heap"),
        seeded("LeavesWithoutEntering", LeaseFault::kLeavesWithoutEntering, {"123", "4"}, {"leave"},
               "the heap has an owner that has not taken back what was put aside"),
        seeded("GoesOnWithoutTheBarrier", LeaseFault::kGoesOnWithoutTheBarrier, {"123", "4"}, {"malloc"},
               "the heap was taken, and not all threads have passed a barrier")),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace annex::test
