// A repeated string instruction runs as a whole: each iteration is charged as a run, and the last look at its counter.
#include <gtest/gtest.h>

#include "guest/simulation.h"

namespace annex::sim {
namespace {

constexpr Address kStart = 0x401000;

struct RepeatedStrings : testing::Test {
  RepeatedStrings() {
    alone.block.start = alone.block.last = kStart + 3;
    alone.block.fall_through = before.block.fall_through = next.block.start = kStart + 6;
    alone.block.instructions = alone.block.slots = 1;
    alone.block.uops = {{.kind = UopClass::kStore, .first = true, .addresses = 1, .sources = {kRdi, kRax}}};
    alone.again = before.again = &alone;
    alone.accesses = 1;
    before.block.start = kStart;
    before.block.last = kStart + 3;
    before.block.instructions = before.block.slots = 2;
    before.block.uops = {{.kind = UopClass::kAlu, .first = true}, alone.block.uops[0]};
    before.block.uops[1].instruction = 1;
    next.block.instructions = 1;
  }
  // How many instructions one that writes so many words takes, and one of the program before it.
  uint64_t taken(unsigned words, TranslatedBlock& then) {
    simulation.enter_block(thread, before);
    for (unsigned i = 0; i < words; ++i) simulation.access_repeated(thread, 0x500000 + 8 * i, 8, true);
    simulation.end_repeated(thread, then.block.start);
    simulation.enter_block(thread, then);
    return simulation.instructions();
  }

  const Machine machine;
  Simulation simulation{machine, 1, false, {}};
  GuestThread& thread = simulation.start_thread();
  TranslatedBlock alone, before, next;
};

TEST_F(RepeatedStrings, OfNoIterationAreOneRun) { EXPECT_EQ(taken(0, next), 2u); }

TEST_F(RepeatedStrings, AreARunAnIterationAndOneMore) { EXPECT_EQ(taken(5, next), 2u + 4 + 1); }

TEST_F(RepeatedStrings, MayGoOnAfterABreak) { EXPECT_EQ(taken(5, alone), 2u + 4); }

TEST_F(RepeatedStrings, ThatSearchEndAtWhatTheyFind) {
  alone.searches = true;
  EXPECT_EQ(taken(5, next), 2u + 4);
}

TEST_F(RepeatedStrings, MayAccessTwoPlacesAnIteration) {
  alone.accesses = 2;
  EXPECT_EQ(taken(6, next), 2u + 2 + 1);
}

}  // namespace
}  // namespace annex::sim
