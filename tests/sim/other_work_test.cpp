// Work between the allocator's calls, beside the program's own; and how it reaches back among the program's lines.
#include "guest/other_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "plain_machine.h"

namespace annex::sim {
namespace {

// --- reuse ---

// As a list, the latest first.
struct SlowStack {
  std::list<Address> lines;
  std::optional<uint32_t> touch(Address line) {
    std::optional<uint32_t> distance;
    if (const auto found = std::find(lines.begin(), lines.end(), line); found != lines.end()) {
      distance = static_cast<uint32_t>(std::distance(lines.begin(), found));
      lines.erase(found);
    }
    lines.push_front(line);
    return distance;
  }
};

TEST(Reuse, DistancesAreThoseOfAList) {
  std::mt19937 random(1);
  ReuseStack stack(1024);
  SlowStack slow;
  for (int i = 0; i < 20000; ++i) {
    const Address line = random() % (random() % 2 == 0 ? 20 : 300);
    ASSERT_EQ(stack.touch(line), slow.touch(line)) << i;
    const uint32_t back = static_cast<uint32_t>(random() % slow.lines.size());
    ASSERT_EQ(stack.at(back), *std::next(slow.lines.begin(), back)) << i;
  }
  EXPECT_EQ(stack.size(), slow.lines.size());
  EXPECT_EQ(stack.at(~0u), slow.lines.back());
}

TEST(Reuse, OfTooManyLinesTheOldestAreForgotten) {
  ReuseStack stack(64);
  for (Address line = 0; line < 1000; ++line) EXPECT_EQ(stack.touch(line), std::nullopt);
  EXPECT_LE(stack.size(), 64);
  EXPECT_EQ(stack.touch(999), 0);
  EXPECT_EQ(stack.touch(990), 9);
  EXPECT_EQ(stack.touch(3), std::nullopt);
}

TEST(Reuse, DistancesAreDrawnAsOftenAsTheyOccurred) {
  ReuseDistances distances;
  for (int i = 0; i < 300; ++i) distances.add(3);
  for (int i = 0; i < 600; ++i) distances.add(1000);
  for (int i = 0; i < 100; ++i) distances.add(std::nullopt);
  std::mt19937_64 random(1);
  int near = 0;
  int far = 0;
  int none = 0;
  for (int i = 0; i < 10000; ++i) {
    const uint32_t drawn = distances.drawn(random(), random());
    near += drawn == 3;
    far += drawn >= 960 && drawn < 1024;
    none += drawn == ~0u;
  }
  EXPECT_NEAR(near, 3000, 200);
  EXPECT_NEAR(far, 6000, 200);
  EXPECT_NEAR(none, 1000, 150);
  EXPECT_EQ(near + far + none, 10000);
}

// --- other work ---

constexpr Address kNext = 0x500000;
constexpr Address kData = 0x10000000;

ProgramParameters work_of(uint32_t instructions, const char* memory = "none") {
  return {.work = instructions, .memory = memory};
}

struct Rig {
  Rig() : machine(plain_machine()), memory(machine), core(0, machine, memory) {
    OtherWork(work_of(2), memory, 1).after_call(core, kNext);  // fetches the code
    core.idle_until(core.now() + 1000);
    before = core.statistics().of(Origin::kProgram).instructions;
    since = core.now();
  }

  uint64_t instructions() const { return core.statistics().of(Origin::kProgram).instructions - before; }
  Cycles cycles() const { return core.now() - since; }

  const Machine machine;
  MemorySystem memory;
  Core core;
  uint64_t before = 0;
  Cycles since = 0;
};

TEST(OtherWork, NoneTakesNoTime) {
  Rig rig;
  OtherWork(work_of(0), rig.memory, 1).after_call(rig.core, kNext);
  EXPECT_EQ(rig.instructions(), 0);
  EXPECT_EQ(rig.cycles(), 0);
}

TEST(OtherWork, TwoInstructionsEndInACycle) {
  Rig rig;
  OtherWork(work_of(1000), rig.memory, 1).after_call(rig.core, kNext);
  EXPECT_EQ(rig.instructions(), 1000);
  EXPECT_NEAR(static_cast<double>(rig.cycles()), 500, 20);
}

TEST(OtherWork, IsNoneOfTheAllocators) {
  Rig rig;
  OtherWork(work_of(100), rig.memory, 1).after_call(rig.core, kNext);
  EXPECT_EQ(rig.core.statistics().of(Origin::kAllocator).instructions, 0);
}

// Goes round an array of so many lines, of which each fourth instruction reads one and each eighth writes one.
struct Program {
  Program(Rig& on, uint32_t size) : rig(on), lines(size), work(work_of(4096, "as-program"), on.memory, 1) {
    for (int round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < lines; ++i) step(i);
    }
  }
  void step(uint32_t i) {
    Block block{.start = kNext, .last = kNext, .fall_through = kNext, .instructions = 4, .slots = 4, .uops = {}};
    const MemoryAccess access = {.address = kData + 64 * Address{i}, .bytes = 8, .store = i % 2 == 0};
    block.uops.push_back({.kind = access.store ? UopClass::kStore : UopClass::kLoad, .first = true});
    rig.core.run(block, {&access, 1}, kNext, Origin::kProgram);
    work.saw(0, block.instructions, {&access, 1});
  }
  uint64_t misses() const {
    const auto& all = rig.memory.l1d(0).misses[index_of(Origin::kProgram)];
    return all[index_of(Access::kLoad)] + all[index_of(Access::kStore)];
  }
  uint64_t accesses() const {
    const ExecutionStatistics counts = rig.core.statistics().of(Origin::kProgram);
    return counts.loads + counts.stores;
  }

  Rig& rig;
  uint32_t lines;
  OtherWork work;
};

TEST(OtherWork, TouchesMemoryAsOftenAsTheProgram) {
  Rig rig;
  Program program(rig, 100);
  const uint64_t before = program.accesses();
  const uint64_t stores = rig.core.statistics().of(Origin::kProgram).stores;
  program.work.after_call(rig.core, kNext);
  EXPECT_EQ(program.accesses() - before, 4096 / 4);
  EXPECT_NEAR(static_cast<double>(rig.core.statistics().of(Origin::kProgram).stores - stores), 4096.0 / 8, 60);
}

TEST(OtherWork, ReachesAsFarBackAsTheProgram) {
  const auto misses_of = [](uint32_t lines) {
    Rig rig;
    Program program(rig, lines);
    const uint64_t before = program.misses();
    program.work.after_call(rig.core, kNext);
    return program.misses() - before;
  };
  const uint64_t in_l1 = plain_machine().l1d.bytes / 64;
  EXPECT_EQ(misses_of(static_cast<uint32_t>(in_l1 / 4)), 0);         // what fits is found
  EXPECT_GT(misses_of(static_cast<uint32_t>(4 * in_l1)), 1024 / 2);  // what doesn't isn't, as by the program
}

TEST(OtherWork, LeavesPagesAloneThatAreGone) {
  Rig rig;
  Program program(rig, 128);
  rig.memory.pages().unmap(kData, kData + 128 * 64);
  rig.memory.shoot_down(kData, kData + 128 * 64);
  const uint64_t before = program.accesses();
  program.work.after_call(rig.core, kNext);
  EXPECT_EQ(program.accesses(), before);
}

TEST(OtherWork, TouchesNothingWhereItIsToldSo) {
  Rig rig;
  OtherWork work(work_of(64, "none"), rig.memory, 1);
  EXPECT_FALSE(work.looks());
}

}  // namespace
}  // namespace annex::sim
