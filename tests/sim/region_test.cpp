// What is counted of regions of interest: gains between two counts, several as one; and how a core warms before them.
#include "guest/region.h"

#include <gtest/gtest.h>

#include <vector>

#include "machine/core.h"
#include "machine/memory_system.h"
#include "plain_machine.h"

namespace annex::sim {
namespace {

using Json = nlohmann::json;

// As Simulation::describe() tells of a run that has done so much.
Json counted(uint64_t work) {
  const uint64_t cycles = 100 * work;
  return {
      {"machine", {{"name", "m"}, {"ways", 8}}},
      {"instructions", 10 * work},
      {"cycles", cycles},
      {"threads", 2},
      {"cores", {{{"instructions", 10 * work}, {"busy_cycles", 50 * work}, {"ipc", 0.2}}}},
      {"memory",
       {{"pages", {{"average_resident", 1000.0 * static_cast<double>(work)}, {"peak_resident", 4096 * work}}}}},
      {"allocator", {{"calls", work}, {"by_cycles", Json::array({{{"below", work < 5 ? 2 : 4}, {"calls", work}}})}}}};
}

TEST(Region, CountsAreWhatWasGained) {
  const Json gains = Region::gained(counted(4), counted(1));
  EXPECT_EQ(gains["instructions"], 30);
  EXPECT_EQ(gains["cycles"], 300);
  EXPECT_EQ(gains["allocator"]["calls"], 3);
  EXPECT_EQ(gains["cores"][0]["instructions"], 30);
}

TEST(Region, WhatIsNoCountStays) {
  const Json gains = Region::gained(counted(4), counted(1));
  EXPECT_EQ(gains["machine"], counted(1)["machine"]);
  EXPECT_EQ(gains["threads"], 2);
  EXPECT_EQ(gains["memory"]["pages"]["peak_resident"], 4 * 4096);
}

TEST(Region, MeansAreOfItsTime) {
  const Json gains = Region::gained(counted(4), counted(1));
  // 4,000 bytes for 400 cycles, 1,000 for the first 100 of them.
  EXPECT_DOUBLE_EQ(gains["memory"]["pages"]["average_resident"], (4000.0 * 400 - 1000.0 * 100) / 300);
  EXPECT_DOUBLE_EQ(gains["cores"][0]["ipc"], 30.0 / 150);
}

TEST(Region, ListsGoByWhatTheirEntriesAreOf) {
  const Json gains = Region::gained(counted(7), counted(3));
  const Json expected = Json::array({{{"below", 4}, {"calls", 7}}, {{"below", 2}, {"calls", 3}}});
  EXPECT_EQ(gains["allocator"]["by_cycles"], expected);
  EXPECT_EQ(Region::gained(counted(3), counted(3))["allocator"]["by_cycles"], Json::array());  // none occurred
}

TEST(Region, TwoThatMeetAreOne) {
  const Json whole = Region::gained(counted(4), counted(1));
  const Json both = Region::together(Region::gained(counted(2), counted(1)), Region::gained(counted(4), counted(2)));
  EXPECT_EQ(both, whole);
}

TEST(Region, ResultsSayWhatIsLeftOut) {
  uint64_t work = 0;
  Region region([&] { return counted(work); });
  EXPECT_EQ(region.results()["region"]["regions"], 0);
  work = 2;
  region.begin();
  work = 3;
  EXPECT_EQ(region.results()["instructions"], 10);  // so far
  work = 4;
  region.end();
  work = 10;
  region.begin();
  work = 11;
  region.end();
  work = 13;
  const Json results = region.results();
  EXPECT_EQ(results["instructions"], 30);
  EXPECT_EQ(results["region"]["regions"], 2);
  EXPECT_EQ(results["region"]["instructions_left_out"], Json({{"before", 20}, {"after", 80}}));
  EXPECT_EQ(results["region"]["calls_left_out"], Json({{"before", 2}, {"after", 8}}));
}

// --- what runs before ---

struct Rig {
  const Machine machine = plain_machine();
  MemorySystem memory{machine};
  Core core{0, machine, memory};

  static Block block() {
    Block block;
    block.start = 0x400000;
    block.last = block.start + 12;
    block.fall_through = block.start + 16;
    block.end = BlockEnd::kConditional;
    block.instructions = block.slots = 4;
    for (uint16_t i = 0; i < 3; ++i) {
      block.uops.push_back({.kind = UopClass::kLoad, .first = true, .instruction = i, .destinations = {kRax}});
    }
    block.uops.push_back({.kind = UopClass::kBranch, .first = true, .instruction = 3});
    return block;
  }
  static std::vector<MemoryAccess> reads(Address from) {
    std::vector<MemoryAccess> made;
    for (uint16_t i = 0; i < 3; ++i) made.push_back({.address = from + 64u * i, .instruction = i, .bytes = 8});
    return made;
  }
};

TEST(Pass, LeavesCachesPagesAndPredictorsAsARunDoes) {
  Rig ran;
  Rig passed;
  for (Address from = 0x10000; from < 0x20000; from += 192) {
    const bool taken = from % 384 == 0;
    const Address next = taken ? 0x400000 : 0x400010;
    ran.core.run(Rig::block(), Rig::reads(from), next, Origin::kProgram);
    passed.core.pass(Rig::block(), Rig::reads(from), next, Origin::kProgram);
  }
  for (Address line = 0x10000; line < 0x20000; line += 64) {
    EXPECT_EQ(passed.memory.state_of(0, line), ran.memory.state_of(0, line)) << line;
  }
  EXPECT_EQ(passed.memory.l1d(0).misses, ran.memory.l1d(0).misses);
  EXPECT_EQ(passed.memory.pages().resident_bytes(), ran.memory.pages().resident_bytes());
  const auto mispredictions = [](const Core& core) { return core.statistics().of(Origin::kProgram).mispredictions; };
  EXPECT_EQ(mispredictions(passed.core), mispredictions(ran.core));
}

TEST(Pass, TakesACycleAnInstructionAndWaitsForMisses) {
  Rig rig;
  const auto passes = [&] {
    const Cycles before = rig.core.now();
    rig.core.pass(Rig::block(), Rig::reads(0x10000), 0x400010, Origin::kProgram);
    return rig.core.now() - before;
  };
  const Cycles cold = passes();
  passes();
  EXPECT_GT(cold, 3 * rig.machine.llc.latency);
  EXPECT_EQ(passes(), 4);
  EXPECT_EQ(rig.core.statistics().cycles(), rig.core.now());
}

TEST(Pass, WhatRunsAfterwardsBeginsThen) {
  Rig rig;
  for (int i = 0; i < 100; ++i) rig.core.pass(Rig::block(), Rig::reads(0x10000), 0x400010, Origin::kProgram);
  const Cycles before = rig.core.now();
  rig.core.run(Rig::block(), Rig::reads(0x10000), 0x400010, Origin::kProgram);
  EXPECT_GT(rig.core.now(), before);
  EXPECT_LT(rig.core.now(), before + 30);
}

}  // namespace
}  // namespace annex::sim
