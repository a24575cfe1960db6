// The core model against times computed by hand, on micro-ops made by hand.
//
// Most tests compare runs of different lengths, so that what it takes to start and to end drops out.
#include "machine/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Register kA = 1, kB = 2, kC = 3, kD = 4;
constexpr Address kData = 0x10000000;

Uop add(Register to, Register from = kNoRegister, Register other = kNoRegister) {
  return {.kind = UopClass::kAlu, .sources = {from, other}, .destinations = {to}};
}
Uop of(UopClass kind) { return {.kind = kind}; }
Uop load(Register to, Register from = kNoRegister) {
  return {.kind = UopClass::kLoad, .sources = {from}, .destinations = {to}};
}
Uop store(Register data = kNoRegister) { return {.kind = UopClass::kStore, .sources = {data}}; }
Uop locked() { return {.kind = UopClass::kStore, .locked = true}; }

// Micro-ops, an instruction each, and their accesses.
struct Code {
  Block block{.start = 0x400000, .last = 0x400004, .fall_through = 0x400008, .uops = {}};
  std::vector<MemoryAccess> accesses;

  Code& operator<<(const Uop& uop) {
    block.uops.push_back(uop);
    block.uops.back().instruction = static_cast<uint16_t>(block.instructions++);
    block.uops.back().first = true;
    return *this;
  }
  Code& access(Address address, unsigned bytes = 8) {
    const Uop& uop = block.uops.back();
    const bool writes = uop.kind == UopClass::kStore;
    accesses.push_back({address, uop.instruction, static_cast<uint8_t>(bytes), writes});
    return *this;
  }
  Code& times(unsigned n, const Uop& uop) {
    for (unsigned i = 0; i < n; ++i) *this << uop;
    return *this;
  }
};

struct Simulation {
  explicit Simulation(const Machine& machine) : memory(machine), core(0, machine, memory) {}

  // From an empty window to the last retirement.
  Cycles time(const Code& code) {
    core.idle_until(core.now() + 10000);
    const Cycles before = core.now();
    run(code);
    EXPECT_EQ(core.statistics().cycles(), core.now());
    return core.now() - before;
  }
  // The same with caches that know it.
  Cycles warm_time(const Code& code) {
    time(code);
    return time(code);
  }
  void run(const Code& code) { run(code, code.block.fall_through); }
  void run(const Code& code, Address next) {
    Block block = code.block;
    block.slots = static_cast<uint32_t>(std::count_if(block.uops.begin(), block.uops.end(), takes_slot));
    core.run(block, code.accesses, next, Origin::kProgram);
  }
  ExecutionStatistics counts() const { return core.statistics().of(Origin::kProgram); }

  MemorySystem memory;
  Core core;
};

// How much longer 300 repetitions take than 100; `make(code, i)` adds one.
template <class Make>
Cycles time_of_200(const Machine& machine, Make&& make) {
  const auto time = [&](unsigned n) {
    Simulation simulation(machine);
    Code code;
    for (unsigned i = 0; i < n; ++i) make(code, i);
    return simulation.warm_time(code);
  };
  return time(300) - time(100);
}

// What a load that misses everywhere takes.
Cycles miss_time(const Machine& machine) {
  Simulation simulation(machine);
  simulation.time(Code() << add(kA));  // fetches the code
  Code code;
  (code << load(kA)).access(kData);
  return simulation.time(code);
}

// What is fused has the entry of the one before, and must not take that one's retirement for the oldest entry's.
TEST(Core, FusedMicroOpsWaitForNoReorderBufferThatHasRoom) {
  const auto time = [](uint32_t entries) {
    Machine machine = plain_machine();
    machine.core.rob = entries;
    return time_of_200(machine, [](Code& code, unsigned i) {
      code << load(kA);
      code.access(kData + 8 * (i % 4));
      code << Uop{.kind = UopClass::kBranch, .fused = true, .sources = {kA}};
    });
  };
  for (const uint32_t entries : {64u, 256u, 512u, 1024u}) EXPECT_EQ(time(entries), time(entries - 1)) << entries;
}

TEST(Core, DependentAddsTakeACycleEach) {
  EXPECT_EQ(time_of_200(plain_machine(), [](Code& code, unsigned) { code << add(kA, kA); }), 200);
}

TEST(Core, IndependentAddsGoAtTheWidth) {
  const auto make = [](Code& code, unsigned) { code << add(kA); };
  Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, make), 50);
  machine.core.width = 2;
  EXPECT_EQ(time_of_200(machine, make), 100);
  machine.core.width = 4;
  machine.core.retire_width = 1;
  EXPECT_EQ(time_of_200(machine, make), 200);
}

// How much longer 300 runs of a block take than 100: in a row, or each the target of a jump from the one before.
Cycles time_of_200_blocks(const Machine& machine, const Code& code, bool taken = false) {
  const auto time = [&](unsigned n) {
    Simulation simulation(machine);
    simulation.warm_time(code);
    const Cycles before = simulation.core.now();
    for (unsigned i = 0; i < n; ++i) simulation.run(code, taken ? code.block.start : code.block.fall_through);
    return simulation.core.now() - before;
  };
  return time(300) - time(100);
}

TEST(Core, DecodeMayBeNarrowerThanDispatch) {
  const Code code = Code().times(6, add(kA));
  Machine machine = plain_machine();
  machine.core.width = machine.core.retire_width = 6;
  machine.core.ports[static_cast<size_t>(UopClass::kAlu)] = 0xff;
  machine.core.decode = 6;
  EXPECT_EQ(time_of_200_blocks(machine, code), 200);
  machine.core.decode = 3;
  EXPECT_EQ(time_of_200_blocks(machine, code), 400);
  machine.core.decode = 1;
  EXPECT_EQ(time_of_200_blocks(machine, code), 1200);
  // No wider than dispatch.
  machine.core.decode = 16;
  EXPECT_EQ(time_of_200_blocks(machine, code), 200);
}

TEST(Core, ATakenBranchEndsACycleOfDecode) {
  const Code code = Code().times(4, add(kA));
  Machine machine = plain_machine();
  machine.core.width = machine.core.retire_width = 8;
  machine.core.ports[static_cast<size_t>(UopClass::kAlu)] = 0xff;
  machine.core.decode = 3;
  EXPECT_NEAR(static_cast<double>(time_of_200_blocks(machine, code)), 200 * 4 / 3.0, 2);
  EXPECT_EQ(time_of_200_blocks(machine, code, true), 200 * 2);
}

TEST(Core, WhatIsDecodedWaitsInAQueue) {
  // While a load that missed keeps the reorder buffer full, decode goes on for as long as its queue has room.
  const auto time = [](uint32_t queue) {
    Machine machine = plain_machine();
    machine.core.rob = 8;
    machine.core.decode = 1;
    machine.core.decode_queue = queue;
    Simulation simulation(machine);
    const Code more = Code().times(8, add(kA));
    simulation.warm_time(more);
    Code miss;
    (miss << load(kB)).access(kData);
    simulation.run(miss);
    for (unsigned i = 0; i < 10; ++i) simulation.run(more);
    return simulation.core.now();
  };
  EXPECT_EQ(time(8) - time(40), 32);
}

TEST(Core, IndependentAddsGoAtThePortsThatTakeThem) {
  Machine machine = plain_machine();
  machine.core.ports[static_cast<size_t>(UopClass::kAlu)] = 0x42;
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { code << add(kA); }), 100);
}

TEST(Core, AddsLeaveThePortThatAMultiplicationNeeds) {
  // One multiplication and three additions a cycle: they fit only if no addition takes port 1.
  const auto make = [](Code& code, unsigned i) { code << (i % 4 == 0 ? of(UopClass::kMul) : add(kA)); };
  EXPECT_EQ(time_of_200(plain_machine(), make), 50);
}

TEST(Core, FusedMicroOpsShareASlot) {
  const auto make = [](Code& code, unsigned) {
    code << add(kA) << add(kB);
    code.block.uops.back().fused = true;
  };
  Machine machine = plain_machine();
  machine.core.width = machine.core.retire_width = 2;
  EXPECT_EQ(time_of_200(machine, make), 100);
}

TEST(Core, DependentLoadsTakeTheCachesLatency) {
  const auto make = [](Code& code, unsigned) { (code << load(kA, kA)).access(kData); };
  Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, make), 200 * machine.l1d.latency);
  Simulation simulation(machine);
  Code code;
  for (unsigned i = 0; i < 1000; ++i) make(code, i);
  const Cycles time = simulation.warm_time(code);
  EXPECT_GT(simulation.core.statistics().cycles(Cause::kL1), time * 9 / 10);
}

TEST(Core, IndependentLoadsGoTwoACycle) {
  const auto make = [](Code& code, unsigned i) { (code << load(kA)).access(kData + i % 8 * 8); };
  EXPECT_EQ(time_of_200(plain_machine(), make), 100);
}

TEST(Core, IndependentMissesOverlapAndDependentOnesDoNot) {
  const Machine machine = plain_machine();
  const Cycles miss = miss_time(machine);
  const auto two = [&](Register address) {
    Simulation simulation(machine);
    simulation.time(Code() << add(kA));
    Code code;
    (code << load(kA)).access(kData);
    (code << load(kB, address)).access(kData + 0x100000);
    return simulation.time(code);
  };
  EXPECT_GT(miss, 100);
  EXPECT_LT(two(kNoRegister), miss + miss / 3);
  EXPECT_GT(two(kA), miss * 9 / 5);
}

// A miss, so many micro-ops, and another miss.
Cycles two_misses_around(const Machine& machine, unsigned n, const Uop& between) {
  Simulation simulation(machine);
  simulation.time(Code() << add(kA));
  Code code;
  (code << load(kA)).access(kData);
  code.times(n, between);
  (code << load(kB)).access(kData + 0x100000);
  return simulation.time(code);
}

TEST(Core, AMissIsOverlappedUpToTheReorderBufferAndNoFurther) {
  const Machine machine = plain_machine();
  const Cycles miss = miss_time(machine);
  EXPECT_LT(two_misses_around(machine, 190, add(kC)), miss + miss / 2);
  EXPECT_GT(two_misses_around(machine, 191, add(kC)), miss * 9 / 5);
}

TEST(Core, WaitingMicroOpsFillTheScheduler) {
  const Machine machine = plain_machine();
  const Cycles miss = miss_time(machine);
  EXPECT_LT(two_misses_around(machine, 59, add(kC, kA)), miss + miss / 2);
  EXPECT_GT(two_misses_around(machine, 60, add(kC, kA)), miss * 9 / 5);
}

TEST(Core, LoadsFillTheirQueue) {
  Machine machine = plain_machine();
  machine.core.load_queue = 8;
  const Cycles miss = miss_time(machine);
  EXPECT_LT(two_misses_around(machine, 6, load(kC)), miss + miss / 2);
  EXPECT_GT(two_misses_around(machine, 7, load(kC)), miss * 9 / 5);
}

TEST(Core, AStoreIsForwardedToALoadOfTheSameBytes) {
  const auto make = [](Code& code, unsigned) {
    (code << store(kA)).access(kData);
    (code << load(kA)).access(kData);
  };
  const Machine machine = plain_machine();
  // A cycle for the store to have its data, then the forwarding.
  EXPECT_EQ(time_of_200(machine, make), 200 * (1 + machine.core.forward));
  Simulation simulation(machine);
  Code code;
  for (unsigned i = 0; i < 10; ++i) make(code, i);
  simulation.time(code);
  EXPECT_EQ(simulation.counts().forwarded, 10);
  EXPECT_EQ(simulation.counts().loads, 10);
  EXPECT_EQ(simulation.counts().stores, 10);
}

// Stores, then a load: how many it forwarded, and how many it blocked.
struct Forwarding {
  uint64_t forwarded, blocked;
  bool operator==(const Forwarding&) const = default;
};
Forwarding forwarding(std::initializer_list<std::pair<Address, unsigned>> stores, Address address, unsigned bytes,
                      const char* how = "contained") {
  Machine machine = plain_machine();
  machine.core.forwarding = how;
  Simulation simulation(machine);
  Code code;
  for (const auto& [to, size] : stores) (code << store()).access(to, size);
  (code << load(kA)).access(address, bytes);
  simulation.time(code);
  return {simulation.counts().forwarded, simulation.counts().blocked};
}

TEST(Core, AStoreForwardsWhatItContains) {
  constexpr Forwarding kNeither{0, 0}, kForwarded{1, 0}, kBlocked{0, 1};
  EXPECT_EQ(forwarding({{kData, 8}}, kData, 8), kForwarded);
  EXPECT_EQ(forwarding({{kData, 8}}, kData + 6, 2), kForwarded);
  EXPECT_EQ(forwarding({{kData, 16}}, kData + 8, 8), kForwarded);
  EXPECT_EQ(forwarding({{kData, 32}}, kData + 3, 16), kForwarded);
  // Other bytes of the same word.
  EXPECT_EQ(forwarding({{kData, 4}}, kData + 4, 4), kNeither);
  EXPECT_EQ(forwarding({{kData, 4}, {kData + 4, 4}}, kData, 4), kForwarded);
  EXPECT_EQ(forwarding({{kData + 4, 8}}, kData, 4), kNeither);
  EXPECT_EQ(forwarding({{kData + 4, 8}}, kData + 12, 4), kNeither);
  // The youngest counts.
  EXPECT_EQ(forwarding({{kData, 4}, {kData, 8}}, kData, 8), kForwarded);
  EXPECT_EQ(forwarding({{kData, 8}, {kData, 4}}, kData, 8), kBlocked);
  // Only a part, or in more than one.
  EXPECT_EQ(forwarding({{kData, 4}}, kData, 8), kBlocked);
  EXPECT_EQ(forwarding({{kData, 8}, {kData + 8, 8}}, kData, 16), kBlocked);
  EXPECT_EQ(forwarding({{kData + 8, 8}}, kData + 4, 8), kBlocked);
  EXPECT_EQ(forwarding({{kData + 16, 4}}, kData + 7, 16), kBlocked);
  EXPECT_EQ(forwarding({{kData + 16, 4}}, kData + 7, 16, "any"), kForwarded);
}

TEST(Core, ABlockedLoadWaitsUntilTheStoreIsWritten) {
  const auto time = [](unsigned stored, const char* how) {
    Machine machine = plain_machine();
    machine.core.forwarding = how;
    return time_of_200(machine, [&](Code& code, unsigned) {
      (code << store(kA)).access(kData, stored);
      (code << load(kA)).access(kData, 8);
    });
  };
  const Machine machine = plain_machine();
  EXPECT_EQ(time(8, "contained"), 200 * (1 + machine.core.forward));
  EXPECT_EQ(time(4, "any"), 200 * (1 + machine.core.forward));
  // The store has its data, retires, and is written; then the load has it from the cache.
  EXPECT_EQ(time(4, "contained"), 200 * (1 + machine.l1d.latency + machine.l1d.latency));
}

// A store whose address is a division's result, and a load from there or from elsewhere.
Code unknown_store(Address from) {
  Code code;
  code << Uop{.kind = UopClass::kDiv, .destinations = {kC}};
  (code << Uop{.kind = UopClass::kStore, .addresses = 1, .sources = {kC}}).access(kData);
  (code << load(kA)).access(from);
  return code;
}

TEST(Core, ALoadThatGuessesWrongAboutAnOlderStoreBeginsAgain) {
  const auto times = [](const char* how) {
    Machine machine = plain_machine();
    machine.core.disambiguation = how;
    Simulation simulation(machine);
    simulation.warm_time(unknown_store(kData + 64));
    EXPECT_EQ(simulation.counts().order_violations, 0);
    std::array<Cycles, 2> times;
    for (Cycles& time : times) time = simulation.time(unknown_store(kData));
    EXPECT_EQ(simulation.counts().order_violations, std::string_view(how) == "predicted");
    EXPECT_EQ(simulation.core.statistics().cycles(), simulation.core.now());
    return times;
  };
  const Machine machine = plain_machine();
  const auto [perfect, same] = times("perfect");
  EXPECT_EQ(perfect, same);
  const auto [first, second] = times("predicted");
  // When the load begins again the store is written, so it is not forwarded (a cycle after the address was known).
  EXPECT_EQ(first, perfect - 1 - machine.core.forward + machine.core.mispredict + machine.l1d.latency);
  EXPECT_EQ(second, perfect);
}

TEST(Core, ALoadThatGuessedWrongWaitsUntilItHasDoneSoInVain) {
  Simulation simulation(plain_machine());
  const Code elsewhere = unknown_store(kData + 64);
  const Cycles guessed = simulation.warm_time(elsewhere);
  simulation.time(unknown_store(kData));
  // 15 times, as long as the division takes and not less.
  for (int i = 0; i < 15; ++i) EXPECT_EQ(simulation.time(elsewhere), guessed + plain_machine().l1d.latency - 1);
  EXPECT_EQ(simulation.time(elsewhere), guessed);
  EXPECT_EQ(simulation.counts().order_violations, 1);
}

TEST(Core, AFullStoreQueueStalls) {
  const auto make = [](Code& code, unsigned) { (code << store()).access(kData); };
  Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, make), 200);  // one is written a cycle
  machine.core.store_queue = 1;
  // Dispatched, issued, done and retired two cycles later, and written after the cache's latency.
  EXPECT_EQ(time_of_200(machine, make), 200 * (2 + machine.l1d.latency));
}

TEST(Core, StoresThatMissHoldNothingUpUntilTheirQueueIsFull) {
  const auto time = [](uint32_t entries) {
    Machine machine = plain_machine();
    machine.core.store_queue = entries;
    Simulation simulation(machine);
    simulation.time(Code() << add(kA));
    Code code;
    for (unsigned i = 0; i < 8; ++i) (code << store()).access(kData + i * 0x10040);
    const Cycles time = simulation.time(code);
    EXPECT_EQ(simulation.core.statistics().cycles(Cause::kDram) > 50, entries < 8);
    return time;
  };
  EXPECT_LT(time(8), 30);
  EXPECT_GT(time(4), miss_time(plain_machine()));
}

Code branch(Address at) {
  Code code;
  code << of(UopClass::kBranch);
  code.block.last = at;
  code.block.end = BlockEnd::kConditional;
  return code;
}

TEST(Core, AWrongPredictionRefillsTheFrontEnd) {
  Machine machine = plain_machine();
  machine.predictor.kind = "bimodal";
  const auto time = [&](bool surprise) {
    Simulation simulation(machine);
    const Code jump = branch(0x400004);
    for (unsigned i = 0; i < 10; ++i) simulation.run(jump, 0);
    simulation.core.idle_until(10000);
    const Cycles before = simulation.core.now();
    const Cycles charged = simulation.core.statistics().cycles(Cause::kBranch);
    simulation.run(jump, surprise ? jump.block.fall_through : 0);
    simulation.run(Code() << add(kA));
    EXPECT_EQ(simulation.core.statistics().cycles(), simulation.core.now());
    EXPECT_EQ(simulation.core.statistics().cycles(Cause::kBranch) - charged,
              surprise ? machine.core.mispredict + 2 : 0);
    EXPECT_EQ(simulation.counts().mispredictions, surprise ? 2 : 1);  // and that of the first time
    return simulation.core.now() - before;
  };
  // The branch is issued a cycle after its dispatch and takes one; then comes the refill. The right prediction is that
  // it is taken, so what it leads to comes in the next cycle.
  EXPECT_EQ(time(true) - time(false), machine.core.mispredict + 2 - machine.core.taken);
}

TEST(Core, WhatATakenBranchLeadsToComesInAnotherCycle) {
  for (const uint32_t taken : {0U, 1U, 3U}) {
    Machine machine = plain_machine();
    machine.predictor.kind = "perfect";
    machine.core.taken = taken;
    Simulation simulation(machine);
    const Code jump = branch(0x400004);
    for (unsigned i = 0; i < 100; ++i) simulation.run(jump, 0);
    const Cycles before = simulation.core.now();
    for (unsigned i = 0; i < 1000; ++i) simulation.run(jump, 0);
    // With nothing in between, the two ports that take branches bound them.
    EXPECT_NEAR(static_cast<double>(simulation.core.now() - before), taken == 0 ? 500 : 1000 * taken, 2) << taken;
  }
}

TEST(Core, APredictableLoopCostsNothing) {
  Machine machine = plain_machine();
  machine.predictor.kind = "tage";
  Simulation simulation(machine);
  Code loop = branch(0x400004);
  loop.times(3, add(kA));
  std::swap(loop.block.uops.front(), loop.block.uops.back());
  for (unsigned i = 0; i < 1000; ++i) simulation.run(loop, loop.block.start);
  const Cycles before = simulation.core.now();
  for (unsigned i = 0; i < 1000; ++i) simulation.run(loop, loop.block.start);
  EXPECT_EQ(simulation.core.now() - before, 1000);
}

TEST(Core, ReturnsAndIndirectJumpsArePredicted) {
  Simulation simulation(plain_machine());
  Code call, back;
  call << of(UopClass::kBranch);
  call.block.end = BlockEnd::kIndirectCall;
  back << of(UopClass::kBranch);
  back.block.end = BlockEnd::kReturn;
  for (unsigned i = 0; i < 10; ++i) {
    simulation.run(call, 0x500000);
    simulation.run(back, call.block.fall_through);
  }
  simulation.run(back, 0x1234);
  EXPECT_EQ(simulation.counts().indirects, 10);
  EXPECT_EQ(simulation.counts().indirect_mispredictions, 1);
  EXPECT_EQ(simulation.counts().returns, 11);
  EXPECT_EQ(simulation.counts().return_mispredictions, 1);
}

TEST(Core, LockedInstructionsSerialize) {
  const Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { (code << locked()).access(kData); }),
            200 * machine.core.atomic);
  // Adds after one neither start before its end nor after the next one's start.
  EXPECT_EQ(time_of_200(machine,
                        [](Code& code, unsigned) {
                          (code << locked()).access(kData);
                          code.times(10, add(kA, kA));
                        }),
            200 * (machine.core.atomic + 10));
}

TEST(Core, LockedInstructionsWaitForStores) {
  Machine machine = plain_machine();
  const auto time = [&](bool with_store) {
    Simulation simulation(machine);
    Code code;
    (code << locked()).access(kData);
    if (with_store) (code << store()).access(kData + 0x100000);
    (code << locked()).access(kData);
    simulation.run(Code() << add(kA));
    return simulation.time(code);
  };
  EXPECT_GT(time(true), time(false) + miss_time(machine) * 3 / 4);
}

TEST(Core, AtomicsAreCountedWithTheirCycles) {
  Simulation simulation(plain_machine());
  Code code;
  for (unsigned i = 0; i < 10; ++i) (code << locked()).access(kData);
  simulation.time(code);
  const uint64_t cold = simulation.counts().atomic_cycles;
  simulation.time(code);
  EXPECT_EQ(simulation.counts().atomics, 20);
  EXPECT_GE(simulation.counts().atomic_cycles - cold, 180);
  EXPECT_LE(simulation.counts().atomic_cycles - cold, 181 + plain_machine().core.front_end);
  EXPECT_GE(simulation.core.statistics().cycles(Cause::kAtomic), 350);
}

TEST(Core, FencesSerialize) {
  const Machine machine = plain_machine();
  const auto make = [](Code& code, unsigned) { code << of(UopClass::kFence) << add(kA, kA) << add(kA, kA); };
  EXPECT_EQ(time_of_200(machine, make), 200 * (machine.core.fence + 2));
}

TEST(Core, PausesHoldTheFrontEnd) {
  const Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { code << of(UopClass::kPause); }), 200 * machine.core.pause);
}

TEST(Core, DivisionsOccupyTheirPort) {
  const Machine machine = plain_machine();
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { code << of(UopClass::kDiv); }), 2000);
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { (code << of(UopClass::kDiv)).times(8, add(kA)); }), 2000);
  Uop chained = of(UopClass::kDiv);
  chained.sources[0] = kA;
  chained.destinations = kA;
  EXPECT_EQ(time_of_200(machine, [&](Code& code, unsigned) { code << chained; }), 200 * 26);
}

TEST(Core, APageFaultDrainsTheWindow) {
  Machine machine = plain_machine();
  machine.pages.fault_us = machine.pages.file_fault_us = 0.5;
  const Cycles fault = machine.from_us(0.5);
  const auto time = [&](const Uop& access, unsigned faults) {
    Simulation simulation(machine);
    simulation.time(Code() << add(kA));
    const Cycles before = simulation.core.statistics().cycles(Cause::kPageFault);
    Code code;
    for (unsigned i = 0; i < 3; ++i) (code << access).access(kData + (i < faults ? i : 0) * 4096);
    code.times(100, add(kC));
    const Cycles time = simulation.time(code);
    EXPECT_EQ(simulation.counts().page_faults, faults + 1);
    EXPECT_GE(simulation.core.statistics().cycles(Cause::kPageFault) - before, faults * fault);
    EXPECT_LE(simulation.core.statistics().cycles(Cause::kPageFault) - before, faults * (fault + 20));
    return time;
  };
  for (const Uop& access : {load(kB), store()}) {
    EXPECT_GE(time(access, 3) - time(access, 1), 2 * fault);  // loads that are independent else
    EXPECT_GE(time(access, 1), fault + 25);                   // a quarter of a cycle for each add, after it
  }
}

TEST(Core, InOrderDoesNotReorder) {
  Machine machine = plain_machine();
  const auto time = [&](const char* kind, bool use_first) {
    machine.core.kind = kind;
    Simulation simulation(machine);
    simulation.time(Code() << add(kA));
    Code code;
    (code << load(kA)).access(kData);
    if (use_first) code << add(kB, kA);
    code.times(50, add(kC, kC));
    if (!use_first) code << add(kB, kA);
    return simulation.time(code);
  };
  const Cycles overlapped = time("out-of-order", true);
  EXPECT_LT(overlapped, miss_time(machine) + 20);
  EXPECT_GT(time("in-order", true), overlapped + 35);  // it stalls at the use ...
  EXPECT_LT(time("in-order", false), overlapped + 5);  // ... and not before
}

TEST(Core, InOrderIssuesAtItsWidth) {
  Machine machine = plain_machine();
  machine.core.kind = "in-order";
  machine.core.width = machine.core.retire_width = 2;
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { code << add(kA); }), 100);
  EXPECT_EQ(time_of_200(machine, [](Code& code, unsigned) { code << add(kA, kA) << add(kB, kB); }), 200);
  // A use right after each load: the latency and the add.
  EXPECT_EQ(time_of_200(machine,
                        [](Code& code, unsigned) {
                          (code << load(kA)).access(kData);
                          code << add(kB, kA);
                        }),
            200 * machine.l1d.latency);
}

TEST(Core, LateInstructionsAreChargedToFetch) {
  Simulation simulation(plain_machine());
  for (unsigned i = 0; i < 100; ++i) {
    Code code;
    code << add(kA);
    code.block.start = code.block.last = 0x400000 + i * 4096;
    code.block.fall_through = code.block.start + 4;
    simulation.run(code);
  }
  EXPECT_GT(simulation.core.statistics().cycles(Cause::kFetch), simulation.core.now() * 9 / 10);
}

TEST(Core, InstructionsThatMissTheirCacheWaitForTheL2) {
  // Twice as many lines as the cache has, over and over, a line a block.
  const Machine machine = plain_machine();
  const unsigned lines = 2 * machine.l1i.bytes / 64;
  const auto round = [&](const Machine& with) {
    Simulation simulation(with);
    Cycles before = 0;
    for (unsigned i = 0; i < 3 * lines; ++i) {
      if (i == 2 * lines) before = simulation.core.now();
      Code code;
      code << add(kA);
      code.block.start = code.block.last = 0x400000 + (i % lines) * 64;
      code.block.fall_through = code.block.start + 64;
      simulation.run(code);
    }
    EXPECT_EQ(simulation.core.statistics().cycles(), simulation.core.now());
    return simulation.core.now() - before;
  };
  EXPECT_EQ(round(machine), lines * machine.l2.latency);
  Machine large = machine;
  large.l1i.bytes *= 4;
  EXPECT_EQ(round(large), lines / machine.core.width);
}

TEST(Core, TimeSpentElsewhereIsCharged) {
  Simulation simulation(plain_machine());
  simulation.core.run((Code() << add(kA)).block, {}, 0, Origin::kAllocator);
  const Cycles before = simulation.core.now();
  simulation.core.spend(1234, Cause::kSystemCall);
  EXPECT_EQ(simulation.core.now(), before + 1234);
  EXPECT_EQ(simulation.core.statistics().of(Origin::kAllocator).cycles[size_t(Cause::kSystemCall)], 1234);
  simulation.core.idle_until(before);
  EXPECT_EQ(simulation.core.now(), before + 1234);
  simulation.core.idle_until(before + 2000);
  EXPECT_EQ(simulation.core.now(), before + 2000);
  EXPECT_EQ(simulation.core.statistics().cycles(Cause::kIdle), 766);
  EXPECT_EQ(simulation.core.statistics().cycles(), simulation.core.now());
}

TEST(Core, AccessesAndMicroOpsNeedNotMatch) {
  Simulation simulation(plain_machine());
  Code code;
  code << load(kA) << store() << add(kB) << load(kC);
  code.accesses = {{kData, 2, 8, false}, {kData + 64, 2, 8, true}, {kData, 3, 8, true}, {kData, 3, 8, false}};
  simulation.time(code);
  EXPECT_EQ(simulation.counts().extra_accesses, 4);  // of the last instruction, the load comes after a store
  EXPECT_EQ(simulation.counts().uops, 8);
  EXPECT_EQ(simulation.counts().loads, 2);
  EXPECT_EQ(simulation.counts().stores, 2);
}

TEST(Core, AnAccessAcrossLinesIsTwo) {
  Simulation simulation(plain_machine());
  Code code;
  (code << load(kA)).access(kData + 60, 8);
  (code << store()).access(kData + 0x1000 - 2, 4);
  simulation.time(code);
  EXPECT_EQ(simulation.counts().loads, 1);
  EXPECT_TRUE(simulation.memory.cached(0, kData));
  EXPECT_TRUE(simulation.memory.cached(0, kData + 64));
  EXPECT_TRUE(simulation.memory.cached(0, kData + 0x1000 - 64));
  EXPECT_TRUE(simulation.memory.cached(0, kData + 0x1000));
}

TEST(Core, IterationsOfAStringInstructionMoveThirtyTwoBytes) {
  Simulation simulation(plain_machine());
  Code code;
  code << store();
  code.block.last = code.block.start;
  code.block.end = BlockEnd::kOther;
  for (unsigned i = 0; i < 4096; ++i) {
    code.accesses = {{kData + i, 0, 1, true}};
    simulation.run(code);
  }
  EXPECT_EQ(simulation.counts().stores, 4096 / 32);
  EXPECT_EQ(simulation.counts().instructions, 4096 / 32);
}

// Anything at all: cycles are all charged, and the same again gives the same.
Cycles run_anything(const char* kind, uint64_t seed) {
  Machine machine;
  machine.core.kind = kind;
  machine.core.width = 3;
  Simulation simulation(machine);
  std::mt19937_64 random(seed);
  for (unsigned run = 0; run < 2000; ++run) {
    Code code;
    code.block.start = 0x400000 + random() % 64 * 512;
    code.block.last = code.block.start + 40;
    code.block.fall_through = code.block.start + 44;
    code.block.end = static_cast<BlockEnd>(random() % 9);
    for (unsigned i = static_cast<unsigned>(random() % 12); i-- > 0;) {
      Uop uop;
      uop.kind = static_cast<UopClass>(random() % kUopClasses);
      if (uop.kind == UopClass::kFence && random() % 8 != 0) uop.kind = UopClass::kAlu;
      uop.fused = i != 0 && random() % 4 == 0;
      uop.locked = random() % 50 == 0;
      for (Register& reg : uop.sources) reg = static_cast<Register>(random() % kRegisters);
      for (size_t i = 0; i < Destinations::kMost; ++i) uop.destinations.set(i, random() % kRegisters);
      code << uop;
      const auto range = uint64_t{1} << (6 + random() % 20);
      if (random() % 3 != 0) code.access(kData + random() % range, static_cast<unsigned>(random() % 40));
    }
    const bool ours = random() % 4 == 0;
    const Address next = random() % 2 == 0 ? code.block.fall_through : 0x400000;
    simulation.core.run(code.block, code.accesses, next, ours ? Origin::kAllocator : Origin::kProgram);
    if (random() % 50 == 0) simulation.core.spend(random() % 5000, Cause::kSystemCall);
    if (random() % 50 == 0) simulation.core.idle_until(simulation.core.now() + random() % 5000);
    EXPECT_EQ(simulation.core.statistics().cycles(), simulation.core.now());
  }
  return simulation.core.now();
}

TEST(Core, AllCyclesAreCharged) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const char* kind : {"out-of-order", "in-order"}) {
      EXPECT_EQ(run_anything(kind, seed), run_anything(kind, seed));
    }
  }
}

TEST(Core, StatisticsHaveNames) {
  CoreStatistics statistics;
  statistics.of(Origin::kAllocator).cycles[size_t(Cause::kDram)] = 7;
  uint64_t found = 0;
  size_t count = 0;
  CoreStatistics::each(statistics, [&](const std::string& name, const uint64_t& value, const char*) {
    if (name == "allocator.cycles.dram") found = value;
    ++count;
  });
  EXPECT_EQ(found, 7);
  EXPECT_EQ(count, 2 * (20 + kCauses + kBlames - 1));
}

// --- software prefetches ---

Code& operator<<(Code& code, const MemoryAccess& access) {
  const Uop uop{.kind = UopClass::kNop, .prefetch = true, .sources = {kA}};
  code.operator<<(uop).accesses.push_back(access);
  MemoryAccess& made = code.accesses.back();
  made.instruction = code.block.uops.back().instruction;
  made.prefetch = true;
  return code;
}
constexpr MemoryAccess kToRead = {.address = kData, .bytes = 1};
constexpr MemoryAccess kToWrite = {.address = kData, .bytes = 1, .store = true};

// With the page's translation there, and the line not.
struct OnAPage : Simulation {
  explicit OnAPage(const Machine& machine) : Simulation(machine) {
    Code touch;
    run((touch << load(kB)).access(kData + 512));
  }
};

TEST(SoftwarePrefetch, NobodyWaitsForIt) {
  OnAPage simulation(plain_machine());
  Code none, one;
  none.times(4, add(kB));
  (one << kToRead).times(4, add(kB));
  simulation.time(one);  // fetches the code
  OnAPage fresh(plain_machine());
  fresh.run(none);
  EXPECT_LE(fresh.time(one), fresh.time(none) + 2);
  EXPECT_TRUE(fresh.memory.cached(0, kData));
}

TEST(SoftwarePrefetch, TheLoadAfterItFindsTheLine) {
  const auto takes = [](const char* prefetches) {
    Machine machine = plain_machine();
    machine.core.prefetches = prefetches;
    OnAPage simulation(machine);
    Code ahead, use;
    ahead << kToRead;
    use << load(kB);
    use.access(kData);
    simulation.time(ahead);
    return simulation.time(use);
  };
  EXPECT_GT(takes("ignore"), takes("fetch") + plain_machine().llc.latency);
}

TEST(SoftwarePrefetch, ToWriteItIsTheCoresOwn) {
  OnAPage simulation(plain_machine());
  Code ahead;
  simulation.run(ahead << kToWrite);
  EXPECT_GE(simulation.memory.state_of(0, kData), State::kExclusive);
}

TEST(SoftwarePrefetch, IsDroppedWhereThePageIsNotThere) {
  Simulation simulation(plain_machine());
  Code ahead;
  simulation.run(ahead << kToRead);
  EXPECT_EQ(simulation.counts().prefetches_dropped, 1);
  EXPECT_FALSE(simulation.memory.cached(0, kData));
  EXPECT_FALSE(simulation.memory.pages().resident(kData));
  EXPECT_EQ(simulation.counts().page_faults, 0);
}

TEST(SoftwarePrefetch, WaitsForItsAddress) {
  const auto takes = [](unsigned before_it) {
    OnAPage simulation(plain_machine());
    Code code;
    code.times(before_it, add(kA, kA));  // a chain
    code << kToRead;
    code << load(kB);
    return simulation.time(code.access(kData));
  };
  EXPECT_LT(takes(40), takes(0) + 40);  // the load asks first, and does not wait for the chain
  const auto late = [](unsigned before_it) {
    OnAPage simulation(plain_machine());
    Code code;
    code.times(before_it, add(kA, kA));
    code << kToRead;
    code << load(kB, kA);
    return simulation.time(code.access(kData));
  };
  EXPECT_EQ(late(40), late(0) + 40);
}

}  // namespace
}  // namespace annex::sim
