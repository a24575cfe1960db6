// Steps that markers enclose: what is left out of the timing, what results are compared with, and what is charged.
#include "guest/marked_steps.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Register kFirst = kFirstInteger + 1, kSecond = kFirstInteger + 2;

Machine machine_with(const MallaccParameters& mallacc) {
  Machine machine = plain_machine();
  machine.cores = 2;
  machine.llc.bytes = 4 << 20;
  machine.mallacc = mallacc;
  return machine;
}

struct Registers final : GuestRegisters {
  std::array<uint64_t, kGuestRegisters> values = {};
  uint64_t read(GuestRegister which) override { return values[static_cast<size_t>(which)]; }
  void write(GuestRegister which, uint64_t value) override { values[static_cast<size_t>(which)] = value; }
};

struct Rig {
  explicit Rig(const MallaccParameters& mallacc = {.entries = 4})
      : machine(machine_with(mallacc)),
        memory(machine),
        core(0, machine, memory),
        other(1, machine, memory),
        steps(machine) {}

  bool at(MarkerKind kind, uint64_t first = 0, uint64_t second = 0) { return at(core, kind, first, second); }
  bool at(Core& on, MarkerKind kind, uint64_t first = 0, uint64_t second = 0) {
    registers.values[kFirst - kFirstInteger] = first;
    registers.values[kSecond - kFirstInteger] = second;
    const Block block = at_marker(kind);
    if (step.left_out && steps.goes_on(step, block)) return true;
    return steps.come_to(step, block, registers, on, Origin::kAllocator, captured);
  }
  static Block at_marker(MarkerKind kind) {
    Block block;
    block.start = 0x400000 + 0x100 * static_cast<Address>(kind);
    block.marker = {static_cast<uint8_t>(kind), kFirst, kSecond};
    return block;
  }
  // Software finds a class.
  bool size(uint64_t bytes, uint32_t number) {
    const bool left_out = at(MarkerKind::kSizeBegin, bytes);
    EXPECT_FALSE(at(MarkerKind::kSizeEnd, number, 16 * number));
    return left_out;
  }
  bool pop(uint32_t number, Address head, Address next) {
    const bool left_out = at(MarkerKind::kPopBegin, number);
    EXPECT_FALSE(at(MarkerKind::kPopEnd, head, next));
    return left_out;
  }
  void push(uint32_t number, Address block) {
    EXPECT_FALSE(at(MarkerKind::kPushBegin, number, block));
    EXPECT_FALSE(at(MarkerKind::kPushEnd));
  }
  uint64_t counted(const char* what) const {
    nlohmann::json out;
    steps.describe(out);
    return out.at(what);
  }
  uint64_t instructions() const { return core.statistics().of(Origin::kAllocator).instructions; }

  const Machine machine;
  MemorySystem memory;
  Core core;
  Core other;
  MarkedSteps steps;
  MarkedStep step;
  Registers registers;
  Call* captured = nullptr;
};

TEST(MarkedSteps, AHitLeavesOutWhatSoftwareDoes) {
  Rig rig;
  EXPECT_FALSE(rig.size(30, 2));
  EXPECT_TRUE(rig.size(30, 2));
  EXPECT_EQ(rig.counted("lookups"), 2u);
  EXPECT_EQ(rig.counted("lookup_hits"), 1u);
  EXPECT_EQ(rig.counted("updates"), 1u);
  EXPECT_EQ(rig.counted("left_out"), 1u);
  EXPECT_EQ(rig.counted("classes"), 1u);
  EXPECT_EQ(rig.counted("wrong_answers"), 0u);
}

// The blocks between are left out until the end's.
TEST(MarkedSteps, AStepLeftOutGoesOnToItsEnd) {
  Rig rig;
  rig.size(30, 2);
  EXPECT_TRUE(rig.at(MarkerKind::kSizeBegin, 30));
  EXPECT_TRUE(rig.steps.goes_on(rig.step, Block{.start = 0x500000, .uops = {}}));
  EXPECT_TRUE(rig.steps.goes_on(rig.step, Rig::at_marker(MarkerKind::kPopEnd)));  // another step's
  EXPECT_FALSE(rig.steps.goes_on(rig.step, Rig::at_marker(MarkerKind::kSizeClass)));
}

TEST(MarkedSteps, OneThatNeverEndsIsGivenUp) {
  Rig rig;
  rig.size(30, 2);
  EXPECT_TRUE(rig.at(MarkerKind::kSizeBegin, 30));
  unsigned blocks = 0;
  while (rig.steps.goes_on(rig.step, Block{.start = 0x500000, .uops = {}})) ASSERT_LT(++blocks, 10000u);
  EXPECT_EQ(rig.counted("steps_without_end"), 1u);
}

TEST(MarkedSteps, TheResultIsThereWhenTheUnitHasIt) {
  Rig rig;
  rig.size(30, 2);
  const Cycles late = rig.core.now() + 500;
  rig.core.set_ready(kFirst, late);  // the size
  rig.size(30, 2);
  EXPECT_EQ(rig.core.ready(kFirst), late + 2);
  EXPECT_EQ(rig.core.ready(kSecond), late + 2);
}

TEST(MarkedSteps, AnAnswerThatSoftwareDoesNotGiveIsCounted) {
  Rig rig;
  rig.size(30, 2);
  rig.size(30, 3);
  EXPECT_EQ(rig.counted("wrong_answers"), 1u);
  rig.push(2, 0x1000);
  rig.push(2, 0x2000);
  rig.pop(2, 0x2000, 0x1008);
  EXPECT_EQ(rig.counted("wrong_answers"), 2u);
  rig.push(2, 0x1000);
  rig.push(2, 0x2000);
  EXPECT_TRUE(rig.at(MarkerKind::kPopBegin, 2));
  EXPECT_FALSE(rig.at(MarkerKind::kPopLeft));  // software's list was empty
  EXPECT_EQ(rig.counted("wrong_answers"), 3u);
}

TEST(MarkedSteps, AListThatSoftwareChangesOtherwiseIsForgotten) {
  Rig rig;
  rig.size(30, 2);
  rig.push(2, 0x1000);
  rig.push(2, 0x2000);
  rig.at(MarkerKind::kDrop, 2);
  EXPECT_FALSE(rig.pop(2, 0x5000, 0x6000));
  EXPECT_EQ(rig.counted("wrong_answers"), 0u);
}

// What the instruction reads is in the program's memory: here the test's own.
TEST(MarkedSteps, APrefetchReadsTheProgramsMemory) {
  Rig rig;
  rig.size(30, 2);
  uint64_t third = 0, second = reinterpret_cast<uint64_t>(&third);
  EXPECT_FALSE(rig.pop(2, 0x1000, reinterpret_cast<uint64_t>(&second)));
  rig.at(MarkerKind::kPrefetch, 2, reinterpret_cast<uint64_t>(&second));
  EXPECT_TRUE(rig.pop(2, reinterpret_cast<uint64_t>(&second), second));
  EXPECT_EQ(rig.counted("wrong_answers"), 0u);
}

TEST(MarkedSteps, AnotherThreadFindsNothingOnTheCore) {
  Rig rig;
  rig.size(30, 2);
  rig.steps.switch_thread(0);
  EXPECT_FALSE(rig.size(30, 2));
  EXPECT_EQ(rig.counted("flushes"), 1u);
}

TEST(MarkedSteps, AThreadThatComesBackFromAnotherCoreFindsNothing) {
  Rig rig;
  rig.size(30, 2);
  EXPECT_FALSE(rig.at(rig.other, MarkerKind::kSizeBegin, 30));
  EXPECT_FALSE(rig.at(rig.core, MarkerKind::kSizeBegin, 30));
}

TEST(MarkedSteps, NoEntriesNoInstructions) {
  Rig rig({.entries = 0, .push = "free"});
  EXPECT_FALSE(rig.size(30, 2));
  EXPECT_FALSE(rig.size(30, 2));
  EXPECT_FALSE(rig.pop(2, 0x1000, 0x2000));
  EXPECT_FALSE(rig.at(MarkerKind::kPrefetch, 2, 0));
  EXPECT_FALSE(rig.at(MarkerKind::kSampleBegin, 32));
  EXPECT_EQ(rig.instructions(), 0u);
  EXPECT_EQ(rig.core.now(), 0u);
}

TEST(MarkedSteps, AFreeStepCostsNothingAndHasItsResultsAtOnce) {
  Rig rig({.size_class = "free", .pop = "free", .push = "free", .sampling = "free"});
  const Cycles late = rig.core.now() + 500;
  rig.core.set_ready(kFirst, late);
  EXPECT_TRUE(rig.size(30, 2));
  EXPECT_EQ(rig.core.ready(kFirst), 0u);
  EXPECT_TRUE(rig.pop(2, 0x1000, 0x2000));
  EXPECT_TRUE(rig.at(MarkerKind::kPushBegin, 2, 0x1000));
  EXPECT_FALSE(rig.at(MarkerKind::kPushEnd));
  EXPECT_TRUE(rig.at(MarkerKind::kSampleBegin, 32));
  EXPECT_FALSE(rig.at(MarkerKind::kSampleLeft));
  EXPECT_EQ(rig.instructions(), 0u);
  EXPECT_EQ(rig.core.now(), 0u);
}

// Of an allocator that does not ask for the bytes of a class's blocks: ranges are of the sizes seen.
TEST(MarkedSteps, WithoutBytesARangeIsOfTheSizesSeen) {
  Rig rig({.entries = 4, .keys = "sizes"});
  const auto hits = [&](uint64_t bytes) {
    const bool left_out = rig.at(MarkerKind::kSizeBegin, bytes);
    rig.at(MarkerKind::kSizeAlone, 2);
    return left_out;
  };
  EXPECT_FALSE(hits(20));
  EXPECT_FALSE(hits(30));
  EXPECT_TRUE(hits(25));
  EXPECT_FALSE(hits(31));
  EXPECT_FALSE(hits(18));
  EXPECT_TRUE(hits(31));
  EXPECT_EQ(rig.counted("wrong_answers"), 0u);
}

TEST(MarkedSteps, TheUnitKnowsOfPushesThatItDoesNotDo) {
  Rig rig({.entries = 4, .push = "software"});
  rig.size(30, 2);
  rig.push(2, 0x1000);
  rig.push(2, 0x2000);
  EXPECT_EQ(rig.counted("pushes"), 0u);
  EXPECT_TRUE(rig.pop(2, 0x2000, 0x1000));
  EXPECT_EQ(rig.counted("wrong_answers"), 0u);
}

// A support core runs the call later: until then nothing takes time, but what is in the cache is decided.
TEST(MarkedSteps, ACapturedStepTakesItsTimeWhenTheCallIsRun) {
  Rig rig;
  Call call;
  rig.captured = &call;
  EXPECT_FALSE(rig.size(30, 2));
  EXPECT_TRUE(rig.size(30, 2));
  EXPECT_EQ(rig.core.now(), 0u);
  EXPECT_EQ(rig.instructions(), 0u);
  EXPECT_EQ(call.steps(), 5u);  // look-up and update; look-up, and its two results
  EXPECT_EQ(call.blocks(), 0u);
  const Cycles late = 500;
  rig.core.set_ready(kFirst, late);
  call.run(rig.core);
  EXPECT_EQ(rig.instructions(), 5u);  // each look-up with its branch
  EXPECT_EQ(rig.core.ready(kSecond), late + 2);
  EXPECT_EQ(rig.counted("lookup_hits"), 1u);
}

// Another call's prefetch was captured first, and is run later: nobody waits for it.
TEST(MarkedSteps, APopWaitsForAPrefetchThatWasRunBeforeIt) {
  for (const bool before : {true, false}) {
    Rig rig;
    rig.size(30, 2);
    uint64_t third = 0, second = reinterpret_cast<uint64_t>(&third);
    Call prefetch, pop;
    rig.captured = &prefetch;
    rig.at(MarkerKind::kPrefetch, 2, reinterpret_cast<uint64_t>(&second));
    rig.captured = &pop;
    EXPECT_TRUE(rig.pop(2, reinterpret_cast<uint64_t>(&second), second));
    if (before) prefetch.run(rig.core);
    pop.run(rig.core);
    if (!before) prefetch.run(rig.core);
    EXPECT_EQ(rig.counted("blocked"), before ? 1u : 0u);
    EXPECT_EQ(rig.counted("wrong_answers"), 0u);
  }
}

// QEMU may have a thread begin a block again that it was told of: it is done once.
TEST(MarkedSteps, AMarkerThatComesAgainIsDoneOnce) {
  Rig rig;
  rig.size(30, 2);
  rig.at(MarkerKind::kSizeBegin, 30);
  rig.step.again = Rig::at_marker(MarkerKind::kSizeBegin).start;
  EXPECT_TRUE(rig.at(MarkerKind::kSizeBegin, 30));
  EXPECT_EQ(rig.counted("lookups"), 2u);
  EXPECT_FALSE(rig.at(MarkerKind::kSizeEnd, 2, 32));
  EXPECT_TRUE(rig.size(30, 2));
  EXPECT_EQ(rig.counted("lookups"), 3u);
}

}  // namespace
}  // namespace annex::sim
