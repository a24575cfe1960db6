// Memento+ against times computed by hand, from the caches' latencies: its object allocators, the transfer cache
// between them, and which calls it serves.
#include "hardware/memento.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Cycles kHit = 4;
constexpr Cycles kL1 = 4;                   // a line that is the core's own
constexpr Cycles kPeer = 4 + 12 + 24 + 20;  // L1, L2, last level, and from another core's cache
constexpr unsigned kClass = 3;              // of 32 bytes
constexpr Address kMalloc = 0x500000;
constexpr Address kHeap = 0x10000000;

Machine machine_with_memento(unsigned cores) {
  Machine machine = plain_machine();
  machine.cores = cores;
  machine.llc.bytes = 8 << 20;
  machine.memento.units = 1;
  return machine;
}

// Object allocators alone.
struct Objects {
  explicit Objects(unsigned cores = 2)
      : machine(machine_with_memento(cores)), memory(machine), own_memory(memory, false), transfer(64, own_memory) {
    for (unsigned core = 0; core < cores; ++core) at.emplace_back(machine.memento, core, own_memory, transfer);
  }
  void free(unsigned core, unsigned times, Cycles when) {
    for (unsigned i = 0; i < times; ++i) at[core].free(kClass, when + i * 1000);
  }

  const Machine machine;
  MemorySystem memory;
  UnitMemory own_memory;
  TransferCache transfer;
  std::deque<ObjectAllocator> at;
};

TEST(ObjectAllocator, AHitTakesOneLook) {
  Objects objects;
  objects.free(0, 1, 0);
  EXPECT_EQ(objects.at[0].allocate(kClass, 5000), 5000 + kHit);
  EXPECT_EQ(objects.at[0].statistics().malloc_hits, 1u);
  EXPECT_EQ(objects.transfer.statistics().locked, 0u);
}

TEST(ObjectAllocator, AMissWithNothingInTheTransferCacheTakesALookALockAndItsHeader) {
  Objects objects;
  objects.at[0].allocate(kClass, 0);  // the first one's lines come from memory
  for (int i = 0; i < 7; ++i) objects.at[0].allocate(kClass, 10000);
  EXPECT_EQ(objects.at[0].kept(), 0u);
  EXPECT_EQ(objects.at[0].allocate(kClass, 20000), 20000 + kHit + kL1 + kL1);
  const ObjectStatistics& statistics = objects.at[0].statistics();
  EXPECT_EQ(statistics.malloc_hits, 7u);
  EXPECT_EQ(statistics.batches_made, 2u);
  EXPECT_EQ(statistics.objects_made, 16u);
  EXPECT_EQ(statistics.arenas, 1u);
}

TEST(ObjectAllocator, AnArenaHasSoManyObjects) {
  Objects objects;
  for (int i = 0; i < 256; ++i) objects.at[0].allocate(kClass, i * 1000);
  EXPECT_EQ(objects.at[0].statistics().arenas, 1u);
  objects.at[0].allocate(kClass, 1000000);
  EXPECT_EQ(objects.at[0].statistics().arenas, 2u);
  objects.at[0].allocate(kClass + 1, 2000000);  // each class has its own
  EXPECT_EQ(objects.at[0].statistics().arenas, 3u);
}

TEST(ObjectAllocator, WhatItHasNoRoomForGoesToTheTransferCacheByBatches) {
  Objects objects;
  objects.free(0, 16, 0);
  EXPECT_EQ(objects.at[0].kept(), 16u);
  EXPECT_EQ(objects.transfer.objects(), 0u);
  objects.free(0, 1, 50000);
  EXPECT_EQ(objects.at[0].kept(), 9u);
  EXPECT_EQ(objects.transfer.objects(), 8u);
  EXPECT_EQ(objects.at[0].statistics().free_hits, 16u);
}

TEST(ObjectAllocator, AnothersBatchTakesALookAndTwoLinesOfTheOthers) {
  Objects objects;
  objects.free(0, 17, 0);
  EXPECT_EQ(objects.at[1].allocate(kClass, 50000), 50000 + kHit + kPeer + kPeer);
  EXPECT_EQ(objects.at[1].statistics().objects_taken, 8u);
  EXPECT_EQ(objects.transfer.objects(), 0u);
  EXPECT_EQ(objects.at[1].kept(), 7u);
}

TEST(ObjectAllocator, ABatchOfItsOwnIsInItsOwnCache) {
  Objects objects;
  objects.free(0, 17, 0);
  for (int i = 0; i < 9; ++i) objects.at[0].allocate(kClass, 40000);
  EXPECT_EQ(objects.at[0].allocate(kClass, 50000), 50000 + kHit + kL1 + kL1);
}

TEST(ObjectAllocator, DuringAnExchangeItTakesNothingUp) {
  Objects objects;
  objects.free(0, 17, 0);
  for (int i = 0; i < 9; ++i) objects.at[0].allocate(kClass, 40000);
  const Cycles done = objects.at[0].allocate(kClass, 50000);
  EXPECT_EQ(objects.at[0].taken_up(50000), done);
  EXPECT_EQ(objects.at[0].taken_up(done), done);
  EXPECT_EQ(objects.at[0].statistics().busy, done - 50000);
  EXPECT_EQ(objects.at[1].taken_up(50000), 50000u);
}

TEST(TransferCache, WhoComesWhileAnotherHasTheLockWaitsForIt) {
  Objects objects(3);
  objects.free(0, 17 + 8, 0);  // two batches, in two lines
  const TransferCache::Batch first = objects.transfer.take(1, kClass, 8, 100000);
  EXPECT_EQ(first.done, 100000 + 2 * kPeer);
  const TransferCache::Batch second = objects.transfer.take(2, kClass, 8, 100010);
  EXPECT_EQ(second.done, first.done + 2 * kPeer);
  EXPECT_EQ(objects.transfer.statistics().waits, 1u);
  EXPECT_EQ(objects.transfer.statistics().waited, first.done - 100010);
  // Another class is another lock.
  objects.transfer.take(2, kClass + 1, 8, 100010);
  EXPECT_EQ(objects.transfer.statistics().waits, 1u);
}

// The unit, asked as calls of a program's would.
struct Rig {
  explicit Rig(Machine m = machine_with_memento(2))
      : machine(m), memory(machine), unit(machine.memento, machine.cores, memory) {
    for (unsigned core = 0; core < machine.cores; ++core) cores.emplace_back(core, machine, memory);
  }

  static Call call(Call::Facts facts) {
    Call made;
    made.facts = facts;
    return made;
  }
  static Call::Facts gets(uint64_t bytes, Address block) {
    return {.plain = true, .allocates = true, .bytes = bytes, .result = block};
  }
  static Call::Facts gives(Address block) { return {.plain = true, .freed = block}; }
  static Call::Facts resizes(Address old, uint64_t bytes, Address block) {
    return {.plain = true, .allocates = true, .bytes = bytes, .result = block, .freed = old};
  }
  // From its issue, or little before, to its answer's coming.
  Cycles allocate(Call::Facts facts, unsigned core = 0) {
    cores[core].idle_until(cores[core].now() + 10000);
    const Cycles before = cores[core].resumes();
    const uint64_t number = unit.ask(cores[core], Service::kAllocate, kMalloc, call(facts));
    const Cycles when = unit.answer(number).value();
    unit.have_answer(cores[core], when);
    return when - before;
  }
  void free(Address block, unsigned core = 0) { unit.ask(cores[core], Service::kFree, kMalloc, call(gives(block))); }
  nlohmann::json told() const {
    nlohmann::json out;
    unit.describe(out);
    return out;
  }
  // What is made is somewhere.
  void check() const {
    const nlohmann::json out = told();
    const auto of = [&](const char* name) { return out[name].get<uint64_t>(); };
    EXPECT_EQ(of("objects_made"), of("kept") + out["transfer"]["objects"].get<uint64_t>() + of("live") + of("lost"));
  }

  const Machine machine;
  MemorySystem memory;
  std::deque<Core> cores;
  Memento unit;
};

TEST(Memento, ServesPlainCallsOfSmallBlocks) {
  Rig rig;
  EXPECT_TRUE(rig.unit.serves(Rig::gets(0, kHeap)));
  EXPECT_TRUE(rig.unit.serves(Rig::gets(512, kHeap)));
  EXPECT_FALSE(rig.unit.serves(Rig::gets(513, kHeap)));
  EXPECT_FALSE(rig.unit.serves(Rig::gets(8, 0)));  // there was no memory
  Call::Facts aligned = Rig::gets(64, kHeap);
  aligned.plain = false;
  EXPECT_FALSE(rig.unit.serves(aligned));
  EXPECT_TRUE(rig.unit.serves(Rig::gives(0)));
}

TEST(Memento, FreesAreItsOwnOfBlocksThatItHasGivenOut) {
  Rig rig;
  EXPECT_FALSE(rig.unit.serves(Rig::gives(kHeap)));
  rig.allocate(Rig::gets(24, kHeap));
  EXPECT_TRUE(rig.unit.serves(Rig::gives(kHeap)));
  rig.free(kHeap, 1);  // whichever core's
  EXPECT_FALSE(rig.unit.serves(Rig::gives(kHeap)));
  EXPECT_EQ(rig.told()["cores"][1]["frees"], 1);
  rig.check();
}

TEST(Memento, AnAnswerOfAHitComesAfterOneLook) {
  Rig rig;
  rig.allocate(Rig::gets(24, kHeap));
  // One cycle to dispatch, and what follows in the core is the same for both.
  const Cycles second = rig.allocate(Rig::gets(24, kHeap + 32));
  const Cycles third = rig.allocate(Rig::gets(17, kHeap + 64));
  EXPECT_EQ(second, third);
  EXPECT_EQ(second, 1 + kHit);
  rig.check();
}

TEST(Memento, AFreeHoldsNobodyUp) {
  Rig rig;
  for (unsigned i = 0; i < 40; ++i) rig.allocate(Rig::gets(24, kHeap + 32 * i));
  const Cycles before = rig.cores[0].now();
  for (unsigned i = 0; i < 8; ++i) rig.free(kHeap + 32 * i);
  EXPECT_LE(rig.cores[0].now(), before + 8 + 2);
  rig.check();
}

TEST(Memento, AReallocWithinItsClassTakesALookAndMovesNothing) {
  Rig rig;
  rig.allocate(Rig::gets(17, kHeap));
  EXPECT_EQ(rig.allocate(Rig::resizes(kHeap, 24, kHeap)), 1 + kHit);
  EXPECT_EQ(rig.told()["resized"], 1);
  EXPECT_EQ(rig.told()["mallocs"], 1);
  rig.allocate(Rig::resizes(kHeap, 25, kHeap));  // the allocator need not move it: to the unit it is another object
  EXPECT_EQ(rig.told()["mallocs"], 2);
  EXPECT_EQ(rig.told()["frees"], 1);
  EXPECT_EQ(rig.told()["live"], 1);
  rig.check();
}

TEST(Memento, AReallocBeyondItsBlocksIsSoftwareAndGivesItsObjectBack) {
  Rig rig;
  rig.allocate(Rig::gets(24, kHeap));
  const Call::Facts grows = Rig::resizes(kHeap, 4000, kHeap + 4096);
  EXPECT_FALSE(rig.unit.serves(grows));
  rig.unit.ran_at_its_core(rig.cores[0], grows);
  EXPECT_EQ(rig.told()["live"], 0);
  EXPECT_EQ(rig.told()["software"], 1);
  EXPECT_EQ(rig.told()["frees"], 1);
  rig.check();
  // And back: it was no block of the unit's.
  EXPECT_FALSE(rig.unit.serves(Rig::resizes(kHeap + 4096, 24, kHeap)));
}

TEST(Memento, AReallocThatFailsKeepsItsBlock) {
  Rig rig;
  rig.allocate(Rig::gets(24, kHeap));
  rig.unit.ran_at_its_core(rig.cores[0], Rig::resizes(kHeap, 1 << 30, 0));
  EXPECT_EQ(rig.told()["live"], 1);
}

TEST(Memento, ABlockThatIsGivenOutTwiceIsCounted) {
  Rig rig;
  rig.allocate(Rig::gets(24, kHeap));
  rig.allocate(Rig::gets(48, kHeap));
  EXPECT_EQ(rig.told()["lost"], 1);
  rig.check();
}

struct Faulting : Rig {
  static Machine of(const char* page_allocator) {
    Machine machine = machine_with_memento(1);
    machine.pages.fault_us = 1;
    machine.memento.page_allocator = page_allocator;
    return machine;
  }
  explicit Faulting(const char* page_allocator) : Rig(of(page_allocator)) {
    memory.pages().map(kHeap, kHeap + (1 << 20), PageKind::kAnonymous);
    allocate(gets(24, kHeap));  // its own lines have their pages then
  }
  Cycles fault_at(Address address) { return memory.load(0, address, cores[0].now(), Origin::kProgram).fault; }
};

TEST(Memento, PagesAreFaultedInAtTheirFirstTouch) {
  Faulting rig("no");
  EXPECT_EQ(rig.allocate(Rig::gets(24, kHeap + 0x1000)), 1 + kHit);
  EXPECT_EQ(rig.fault_at(kHeap + 0x1000), 2000u);
}

TEST(Memento, ThePageAllocatorGivesThemWithTheFirstBlock) {
  Faulting rig("yes");
  EXPECT_EQ(rig.allocate(Rig::gets(24, kHeap + 0x1000)), 1 + kHit + 40);
  EXPECT_EQ(rig.allocate(Rig::gets(24, kHeap + 0x1020)), 1 + kHit);
  EXPECT_EQ(rig.allocate(Rig::gets(24, kHeap + 0x1ff0)), 1 + kHit + 40);  // of which a part is in the next page
  EXPECT_EQ(rig.fault_at(kHeap + 0x1000), 0u);
  EXPECT_EQ(rig.fault_at(kHeap + 0x2000), 0u);
  EXPECT_EQ(rig.fault_at(kHeap + 0x3000), 2000u);
  EXPECT_EQ(rig.told()["pages"], 3);
}

TEST(Memento, WhatDoesNotGoTogetherIsRefused) {
  Machine machine = machine_with_memento(1);
  EXPECT_TRUE(problems_of(machine).empty());
  machine.memento.batch = 17;
  ASSERT_EQ(problems_of(machine).size(), 1u);
  EXPECT_EQ(problems_of(machine)[0], "memento: batch = 17 is more than the 16 objects that a core keeps");
  machine.memento.batch = 16;
  machine.fixed_time.units = 1;
  ASSERT_EQ(problems_of(machine).size(), 1u);
}

}  // namespace
}  // namespace annex::sim
