// Message passing between heaps in every order of its steps: two threads, and three, that post (and so sort), complete
// a slab (and so reap), take in, put the heap into the pool or take it out. What must hold afterwards is in world.cpp:
// check.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/remote/world.h"

namespace annex::test {
namespace {

// What threads may do. Three at a time have so many orders that they try less.
struct Choices {
  std::vector<Program> senders;
  std::vector<Program> owners;       // of a heap that has one
  std::vector<Program> next_owners;  // of one in the pool
};
const std::vector<Program> kOwners = {{"take in"},         {"take in", "take in"}, {"pool"},
                                      {"take in", "pool"}, {"pool", "unpool"},     {"pool", "unpool", "pool"}};
const std::vector<Program> kNextOwners = {{"unpool"}, {"unpool", "take in"}, {"unpool", "pool"}};
const Choices kOfOne = {{{"A0"},
                         {"A1"},
                         {"A01"},
                         {"B0"},
                         {"B1"},
                         {"B01"},
                         {"C0"},
                         {"D0"},
                         {"C0", "A0"},
                         {"A1!"},
                         {"B1!"},
                         {"B01!"},
                         {"C0!"}},
                        kOwners,
                        kNextOwners};
const Choices kOfTwo = {{{"A0"}, {"A01"}, {"B0"}, {"B1"}, {"C0"}, {"D0"}, {"A1!"}, {"B1!"}, {"C0!"}}, {}, {}};
#ifdef ANNEX_TEST_SANITIZED  // four times as slow: some of them
const Choices kOfThree = {{{"A0"}, {"B1!"}}, {{"pool"}}, {{"unpool"}, {"unpool", "pool"}}};
#else
const Choices kOfThree = {{{"A0"}, {"C0"}, {"A1!"}, {"B1!"}}, {{"pool"}}, {{"unpool"}, {"unpool", "pool"}}};
#endif

// What has been sent before.
const std::vector<Program> kBefore = {{}, {"A0"}, {"B0"}, {"A0", "B0"}};

bool sends_one_twice(const std::vector<Program>& programs) {
  std::string sent;
  for (const Program& program : programs) {
    for (const std::string& operation : program) {
      for (size_t i = 1; i < operation.size() && operation[i] != '!'; ++i) {
        const std::string block = {operation[0], operation[i], ' '};
        if (sent.find(block) != std::string::npos) return true;
        sent += block;
      }
    }
  }
  return false;
}

// Every plan with so many senders, and with an owner or without one.
template <class Act>
void for_each_plan(const Choices& choices, size_t senders, bool owner, Act act) {
  std::vector<Program> programs;
  const auto choose = [&](auto self, size_t from, size_t left, bool pooled, const Program& before) -> void {
    if (left > 0) {
      for (size_t i = from; i < choices.senders.size(); ++i) {
        programs.push_back(choices.senders[i]);
        self(self, i + 1, left - 1, pooled, before);
        programs.pop_back();
      }
      return;
    }
    std::vector<Program> all = programs;
    all.push_back(before);
    if (sends_one_twice(all)) return;
    if (!owner) return act(Plan{pooled, before, programs});
    for (const Program& program : pooled ? choices.next_owners : choices.owners) {
      programs.push_back(program);
      act(Plan{pooled, before, programs});
      programs.pop_back();
    }
  };
  for (const Program& before : kBefore) choose(choose, 0, senders, false, before);
  choose(choose, 0, senders, true, {});
}

std::string text(const Plan& plan) {
  std::string text = plan.pooled ? "a pooled heap" : "a heap with an owner";
  for (const std::string& operation : plan.before) text += ", " + operation;
  return text;
}

void expect_all_hold(const Choices& choices, size_t senders, bool owner) {
  uint64_t plans = 0;
  uint64_t orders = 0;
  bool failed = false;  // one failure is enough to read
  for_each_plan(choices, senders, owner, [&](const Plan& plan) {
    if (failed) return;
    const Scheduler::Outcome outcome = Scheduler::explore([&] { return make_world(plan); });
    ++plans;
    orders += outcome.orders;
    failed = !outcome.failure.empty();
    EXPECT_FALSE(failed) << text(plan) << ": " << outcome.failure;
  });
  printf("%lu plans, %lu orders\n", plans, orders);
}

TEST(Interleavings, OfTwoSenders) { expect_all_hold(kOfTwo, 2, false); }
TEST(Interleavings, OfASenderAndAnOwner) { expect_all_hold(kOfOne, 1, true); }
TEST(Interleavings, OfTwoSendersAndAnOwner) { expect_all_hold(kOfThree, 2, true); }

}  // namespace
}  // namespace annex::test
