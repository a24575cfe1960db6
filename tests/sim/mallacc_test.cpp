// Mallacc's instructions against times computed by hand.
#include "hardware/mallacc.h"

#include <gtest/gtest.h>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Address kCode = 0x400000;
constexpr Address kHead = 0x10000000, kNext = 0x20000000;
constexpr Register kSize = kFirstInteger + 6, kClass = kFirstInteger + 1, kBytes = kFirstInteger + 2;

struct Rig {
  explicit Rig(MallaccParameters parameters = {.entries = 4})
      : machine(plain_machine()), memory(machine), core(0, machine, memory), unit(parameters) {
    unit.drop(place(), {kClass, 99});  // fetches the code
    core.idle_until(core.now() + 10000);
    core.set_ready(kClass, core.now());
  }

  Mallacc::Place place() { return {core, kCode, Origin::kAllocator}; }
  void knows(uint32_t number) { unit.learn(16 * number, number, 16 * number); }

  const Machine machine;
  MemorySystem memory;
  Core core;
  Mallacc unit;
};

TEST(Mallacc, ALookUpTakesTwoCyclesWithTheIndexAndOneWithout) {
  for (const auto& [keys, cycles] : {std::pair("indices", 2), std::pair("sizes", 1)}) {
    Rig rig({.entries = 4, .keys = keys});
    rig.knows(1);
    const Cycles size_known = rig.core.now() + 500;
    rig.core.set_ready(kSize, size_known);
    const auto answer = rig.unit.look_up(rig.place(), {kSize, 16});
    ASSERT_TRUE(answer.found);
    EXPECT_EQ(answer.found->number, 1u);
    EXPECT_EQ(answer.done, size_known + cycles);
  }
}

TEST(Mallacc, ListInstructionsAreInOrder) {
  Rig rig;
  rig.knows(1);
  rig.knows(2);
  const Cycles late = rig.core.now() + 500;
  rig.core.set_ready(kBytes, late);
  rig.unit.push(rig.place(), {kClass, 1}, {kBytes, kHead});  // waits for its block
  const auto other = rig.unit.pop(rig.place(), {kClass, 2});
  EXPECT_EQ(other.done, late + 2);
  // A look-up is no list instruction.
  EXPECT_LT(rig.unit.look_up(rig.place(), {kNoRegister, 16}).done, late);
}

// The head is fetched from memory: 4 + 12 + 24 cycles of the caches and what memory takes. Its entry waits for that;
// the core and other entries don't.
TEST(Mallacc, APrefetchBlocksItsEntryUntilTheLineIsHere) {
  Rig rig;
  rig.knows(1);
  rig.knows(2);
  rig.unit.push(rig.place(), {kClass, 2}, {kNoRegister, 0x30000000});
  rig.unit.push(rig.place(), {kClass, 2}, {kNoRegister, 0x30000040});
  const Cycles before = rig.core.now();
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kNoRegister, kHead}, kNext);
  EXPECT_LE(rig.core.now(), before + 3);  // it has retired
  EXPECT_TRUE(rig.memory.cached(0, kHead));
  const auto other = rig.unit.pop(rig.place(), {kClass, 2});
  EXPECT_TRUE(other.found);
  EXPECT_LE(other.done, before + 5);
  EXPECT_EQ(rig.unit.statistics().blocked, 0u);

  const auto blocked = rig.unit.pop(rig.place(), {kClass, 1});
  ASSERT_TRUE(blocked.found);
  EXPECT_EQ(blocked.found->head, kHead);
  EXPECT_EQ(blocked.found->next, kNext);
  EXPECT_GE(blocked.done, before + 4 + 12 + 24);
  EXPECT_EQ(rig.unit.statistics().blocked, 1u);
  EXPECT_GT(rig.unit.statistics().blocked_cycles, 4u + 12 + 24 - 8);
  EXPECT_GE(rig.core.statistics().cycles(Cause::kUnit), rig.unit.statistics().blocked_cycles - 8);
}

// In L1 the line is there four cycles after the read is issued, and the pop a cycle after that.
TEST(Mallacc, APrefetchThatHitsInL1IsBackInFourCycles) {
  Rig rig;
  rig.knows(1);
  rig.memory.load(0, kHead, rig.core.now(), Origin::kProgram);
  rig.core.idle_until(rig.core.now() + 10000);
  rig.unit.prefetch(rig.place(), {kNoRegister, 1}, {kNoRegister, kHead}, kNext);
  const Cycles issued = rig.core.ready(kMallocList);  // and a cycle of its own
  EXPECT_EQ(rig.unit.pop(rig.place(), {kNoRegister, 1}).done, issued + 4 + 1);
}

TEST(Mallacc, APrefetchReadsOnlyWhatItCanFill) {
  Rig rig;
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kNoRegister, kHead}, kNext);  // no entry
  rig.knows(1);
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kNoRegister, 0}, 0);  // an empty list
  EXPECT_EQ(rig.unit.statistics().reads, 0u);
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kNoRegister, kHead}, kNext);
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kNoRegister, kHead}, kNext);  // has both
  EXPECT_EQ(rig.unit.statistics().reads, 1u);
  EXPECT_EQ(rig.unit.statistics().prefetches, 4u);
}

// The branch after a look-up: a miss after many hits is predicted wrong.
TEST(Mallacc, TheBranchOnAMissIsPredicted) {
  Machine machine = plain_machine();
  machine.predictor.kind = "bimodal";
  MemorySystem memory(machine);
  Core core(0, machine, memory);
  Mallacc unit({.entries = 4});
  unit.learn(16, 1, 16);
  const Mallacc::Place place = {core, kCode, Origin::kAllocator};
  for (int i = 0; i < 10; ++i) unit.look_up(place, {kNoRegister, 16});
  const uint64_t before = core.statistics().of(Origin::kAllocator).mispredictions;
  unit.look_up(place, {kNoRegister, 160});
  EXPECT_EQ(core.statistics().of(Origin::kAllocator).mispredictions, before + 1);
}

TEST(Mallacc, ASampleInterruptsWhenItsBytesAreCounted) {
  Rig rig({.entries = 4, .sample_bytes = 100, .interrupt = 5000});
  const Cycles before = rig.core.now();
  rig.unit.count(rig.place(), {kNoRegister, 60});
  EXPECT_LT(rig.core.now(), before + 100);
  rig.unit.count(rig.place(), {kNoRegister, 60});
  EXPECT_GE(rig.core.now(), before + 5000);
  EXPECT_EQ(rig.unit.statistics().samples, 1u);
  EXPECT_EQ(rig.unit.statistics().counted, 120u);
}

TEST(Mallacc, InstructionsThatCostNothingTakeNoCycle) {
  Rig rig({.entries = 4, .instructions = "none"});
  const Cycles before = rig.core.now();
  const uint64_t instructions = rig.core.statistics().of(Origin::kAllocator).instructions;
  rig.unit.look_up(rig.place(), {kSize, 16});
  rig.unit.update(rig.place(), 16, {kClass, 1}, {kBytes, 16});
  rig.unit.push(rig.place(), {kClass, 1}, {kBytes, kHead});
  rig.unit.prefetch(rig.place(), {kClass, 1}, {kBytes, kHead}, kNext);
  EXPECT_TRUE(rig.unit.pop(rig.place(), {kClass, 1}).found);
  rig.unit.count(rig.place(), {kBytes, 16});
  EXPECT_EQ(rig.core.now(), before);
  EXPECT_EQ(rig.core.statistics().of(Origin::kAllocator).instructions, instructions);
}

}  // namespace
}  // namespace annex::sim
