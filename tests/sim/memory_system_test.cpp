// The memory side as a whole: latencies by level, counts against a naive hierarchy, MESI by table, inclusion, queues,
// the allocator's share, prefetching, and that the same requests always get the same answers.
#include "machine/memory_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

namespace annex::sim {
namespace {

constexpr Origin kProgram = Origin::kProgram;
constexpr Origin kAllocator = Origin::kAllocator;

// Latencies that show which levels a request passed. Small caches, so that evictions are frequent.
Machine small_machine(uint32_t cores) {
  Machine machine;
  machine.cores = cores;
  machine.l1i = {.bytes = 1024, .ways = 2, .latency = 3, .mshrs = 16};
  machine.l1d = {.bytes = 1024, .ways = 4, .latency = 4, .mshrs = 16};
  machine.l2 = {.bytes = 4096, .ways = 4, .latency = 12, .mshrs = 16};
  machine.llc = {.bytes = 16384, .ways = 8, .latency = 24, .mshrs = 64};
  machine.coherence.transfer = 20;
  machine.coherence.invalidate = 12;
  machine.coherence.further = 3;
  machine.pages.clearing = "none";
  return machine;
}

// Of a reply, without translation and fault.
Cycles latency(const Reply& reply, Cycles at) { return reply.ready - at - reply.translation - reply.fault; }

Reply request(MemorySystem& memory, unsigned core, Access access, Address address, Cycles at,
              Origin origin = kProgram) {
  switch (access) {
    case Access::kLoad:
      return memory.load(core, address, at, origin);
    case Access::kStore:
      return memory.store(core, address, at, origin);
    default:
      return memory.fetch(core, address, at, origin);
  }
}

TEST(MemorySystem, ACoreNearMemoryIsFurtherFromTheLastLevelAndNearerToMemory) {
  Machine machine = small_machine(1);
  machine.support_core.cores = 1;
  machine.support_core.far = 30;
  machine.support_core.near = 40;
  machine.others.push_back({});
  static_cast<CoreKind&>(machine.others.back()) = machine;
  machine.others.back().name = kSupportCore;
  machine.others.back().threads = "no";
  const Cycles dram = Dram(machine).read(0, 0);
  MemorySystem memory(machine);
  EXPECT_EQ(latency(memory.load(1, 0, 0, kAllocator), 0), 4 + 12 + 24 + dram - 40);
  memory.load(0, 64, 10'000, kProgram);
  EXPECT_EQ(latency(memory.fetch(1, 64, 20'000, kAllocator), 20'000), 3 + 12 + 30 + 24 + 20u);  // its owner's
  EXPECT_EQ(latency(memory.load(0, 1 << 20, 30'000, kProgram), 30'000), 4 + 12 + 24 + Dram(machine).read(1 << 14, 0));
}

TEST(MemorySystem, LatenciesAddLevelByLevel) {
  const Machine machine = small_machine(1);
  MemorySystem memory(machine);
  const Cycles dram = Dram(machine).read(0, 0);
  const Reply first = memory.load(0, 0, 0, kProgram);
  EXPECT_EQ(first.level, Level::kDram);
  EXPECT_EQ(latency(first, 0), 4 + 12 + 24 + dram);
  const Reply second = memory.load(0, 63, 10'000, kProgram);
  EXPECT_EQ(second.level, Level::kL1);
  EXPECT_EQ(second.ready, 10'004u);
  // Out of the L1 (4 ways, 4 sets), not the L2 (16 sets); then out of the L2, not the last level (32 sets).
  for (Address i = 1; i <= 4; ++i) memory.load(0, i * 256, 20'000 + i * 1000, kProgram);
  const Reply third = memory.load(0, 0, 30'000, kProgram);
  EXPECT_EQ(third.level, Level::kL2);
  EXPECT_EQ(latency(third, 30'000), 16u);
  for (Address i = 2; i <= 5; ++i) memory.load(0, i * 1024, 40'000 + i * 1000, kProgram);
  const Reply fourth = memory.load(0, 0, 50'000, kProgram);
  EXPECT_EQ(fourth.level, Level::kLlc);
  EXPECT_EQ(latency(fourth, 50'000), 40u);
}

TEST(MemorySystem, TranslationAndFaultsAreToldApart) {
  Machine machine = small_machine(1);
  machine.dtlb = {.entries = 2, .ways = 2, .latency = 1};
  machine.stlb = {.entries = 16, .ways = 4, .latency = 7};
  machine.pages.walk = 30;
  machine.pages.fault_us = machine.pages.file_fault_us = 0.5;
  MemorySystem memory(machine);
  const Reply first = memory.load(0, 0, 0, kProgram);
  EXPECT_EQ(first.translation, 1u + 7 + 30);
  EXPECT_EQ(first.fault, machine.from_us(0.5));
  const Reply again = memory.load(0, 0, 10'000, kProgram);
  EXPECT_EQ(again.translation, 1u);
  EXPECT_EQ(again.fault, 0u);
  EXPECT_EQ(again.ready, 10'005u);
  memory.load(0, 0x1000, 20'000, kProgram);
  memory.load(0, 0x2000, 30'000, kProgram);
  EXPECT_EQ(memory.load(0, 0, 40'000, kProgram).translation, 1u + 7);  // in the second TLB still
  memory.pages().drop(0, 0x1000);
  memory.shoot_down(0, 0x1000);
  const Reply dropped = memory.load(0, 0, 50'000, kProgram);
  EXPECT_EQ(dropped.translation, 1u + 7 + 30);
  EXPECT_EQ(dropped.fault, machine.from_us(0.5));
  EXPECT_EQ(memory.dtlb(0).misses[0], 5u);
  EXPECT_EQ(memory.stlb(0).misses[0], 4u);
}

TEST(MemorySystem, HugePagesNeedFewEntries) {
  Machine machine = small_machine(1);
  machine.pages.huge_pages = "always";
  MemorySystem memory(machine);
  memory.pages().map(0, 8 << 20, PageKind::kAnonymous);
  EXPECT_EQ(memory.load(0, 12345, 0, kProgram).fault, machine.from_us(machine.pages.huge_fault_us));
  for (Address address = 0; address < 8 << 20; address += 4096) memory.load(0, address, 1'000'000 + address, kProgram);
  EXPECT_EQ(memory.dtlb(0).misses[0], 4u);
  EXPECT_EQ(memory.pages().resident_bytes(), 8u << 20);
}

// The first lines of pages 64 KiB apart: in one set by their addresses, in many where the frames are scattered.
TEST(MemorySystem, ScatteredFramesSpreadPagesOverTheSets) {
  const auto misses_again = [](const char* frames) {
    constexpr Address kPages = 48;
    Machine machine = small_machine(1);
    machine.llc.bytes = 256 * 1024;
    machine.pages.frames = frames;
    MemorySystem memory(machine);
    memory.pages().map(0, kPages << 16, PageKind::kAnonymous);
    const auto touch_all = [&](Cycles at) {
      for (Address page = 0; page < kPages; ++page) memory.load(0, page << 16, at + page * 10'000, kProgram);
    };
    const auto misses = [&] { return memory.llc().misses[0][0]; };
    touch_all(0);
    const uint64_t before = misses();
    touch_all(10'000'000);
    EXPECT_TRUE(memory.inconsistencies().empty());
    return misses() - before;
  };
  EXPECT_EQ(misses_again("as virtual"), 48u);
  EXPECT_LT(misses_again("scattered"), 10u);
}

TEST(MemorySystem, EachPageHasAFrameOfItsOwn) {
  std::set<Address> frames;
  for (Address page = 0; page < 100'000; ++page) {
    EXPECT_TRUE(frames.insert(scattered_frame(page * 16)).second);
    EXPECT_TRUE(frames.insert(scattered_frame((Address{1} << 36) - 1 - page)).second);
  }
  EXPECT_LT(*frames.rbegin(), Address{1} << 36);
}

TEST(MemorySystem, ALineOnItsWayIsWaitedFor) {
  MemorySystem memory(small_machine(1));
  memory.load(0, 4096 - 64, 0, kProgram);  // the page
  const Reply first = memory.load(0, 0, 10'000, kProgram);
  const Reply second = memory.load(0, 8, 10'010, kProgram);
  EXPECT_EQ(second.ready, first.ready);
  EXPECT_EQ(second.level, Level::kDram);
  EXPECT_EQ(memory.l1d(0).late_hits[0], 1u);
  EXPECT_EQ(memory.l1d(0).misses[0][0], 2u);
  EXPECT_EQ(memory.load(0, 16, first.ready, kProgram).level, Level::kL1);
}

TEST(MemorySystem, MshrsBoundMisses) {
  Machine machine = small_machine(1);
  machine.l1d.mshrs = 2;
  MemorySystem memory(machine);
  memory.load(0, 4096 - 64, 0, kProgram);
  const Reply a = memory.load(0, 0, 10'000, kProgram);
  memory.load(0, 64, 10'000, kProgram);
  const Reply c = memory.load(0, 128, 10'000, kProgram);
  EXPECT_GE(c.ready, a.ready + 12 + 24);
  EXPECT_EQ(memory.l1d(0).mshr_cycles, a.ready - 10'004);
}

// --- Counts against a naive hierarchy ---

class ReferenceCache {
 public:
  ReferenceCache(const CacheParameters& parameters)
      : sets_(parameters.bytes / 64 / parameters.ways), ways_(parameters.ways) {}

  struct Entry {
    Address line;
    bool dirty;
  };

  Entry* find(Address line) {
    for (Entry& entry : set(line)) {
      if (entry.line == line) return &entry;
    }
    return nullptr;
  }
  void use(Address line) {
    std::list<Entry>& all = set(line);
    all.splice(all.begin(), all, std::find_if(all.begin(), all.end(), [&](const Entry& e) { return e.line == line; }));
  }
  bool full(Address line) { return set(line).size() == ways_; }
  Entry oldest(Address line) { return set(line).back(); }
  void add(Address line) { set(line).push_front({line, false}); }
  void remove(Address line) {
    set(line).remove_if([&](const Entry& entry) { return entry.line == line; });
  }

  uint64_t misses[3] = {};
  uint64_t evictions = 0;
  uint64_t write_backs = 0;

 private:
  std::list<Entry>& set(Address line) { return lines_[line % sets_]; }
  uint64_t sets_;
  uint32_t ways_;
  std::map<uint64_t, std::list<Entry>> lines_;
};

// One core. Inclusive, write-back; write-backs are no uses.
struct ReferenceHierarchy {
  explicit ReferenceHierarchy(const Machine& machine)
      : l1i(machine.l1i), l1d(machine.l1d), l2(machine.l2), llc(machine.llc) {}

  void access(Access kind, Address line) {
    const size_t k = index_of(kind);
    ReferenceCache& l1 = kind == Access::kFetch ? l1i : l1d;
    if (l1.find(line) == nullptr) {
      ++l1.misses[k];
      if (l2.find(line) == nullptr) {
        ++l2.misses[k];
        if (llc.find(line) == nullptr) {
          ++llc.misses[k];
          if (llc.full(line)) {
            const Address out = llc.oldest(line).line;
            if (l2.find(out) != nullptr) leave_l2(out);
            ++llc.evictions;
            if (llc.find(out)->dirty) ++llc.write_backs;
            llc.remove(out);
          }
          llc.add(line);
        }
        llc.use(line);
        if (l2.full(line)) {
          const Address out = l2.oldest(line).line;
          ++l2.evictions;
          if (leave_l2(out)) ++l2.write_backs;
        }
        l2.add(line);
      }
      l2.use(line);
      if (l1.full(line)) {
        const auto out = l1.oldest(line);
        ++l1.evictions;
        if (out.dirty) {
          ++l1.write_backs;
          l2.find(out.line)->dirty = true;
        }
        l1.remove(out.line);
      }
      l1.add(line);
    }
    l1.use(line);
    if (kind == Access::kStore) l1.find(line)->dirty = true;
  }

  bool leave_l2(Address line) {
    const bool dirty = l2.find(line)->dirty || (l1d.find(line) != nullptr && l1d.find(line)->dirty);
    l1d.remove(line);
    l1i.remove(line);
    l2.remove(line);
    if (dirty) llc.find(line)->dirty = true;
    return dirty;
  }

  ReferenceCache l1i, l1d, l2, llc;
};

void expect_same(const CacheStatistics& counted, const ReferenceCache& reference, const char* name) {
  for (size_t kind = 0; kind < kAccesses; ++kind) EXPECT_EQ(counted.misses[0][kind], reference.misses[kind]) << name;
  EXPECT_EQ(counted.evictions[0], reference.evictions) << name;
  EXPECT_EQ(counted.write_backs[0], reference.write_backs) << name;
}

void compare(const Machine& machine, int accesses, const std::function<std::pair<Access, Address>(int)>& next) {
  MemorySystem memory(machine);
  ReferenceHierarchy reference(machine);
  for (int i = 0; i < accesses; ++i) {
    const auto [kind, address] = next(i);
    request(memory, 0, kind, address, static_cast<Cycles>(i) * 10);
    reference.access(kind, line_of(address));
  }
  expect_same(memory.l1i(0), reference.l1i, "l1i");
  expect_same(memory.l1d(0), reference.l1d, "l1d");
  expect_same(memory.l2(0), reference.l2, "l2");
  expect_same(memory.llc(), reference.llc, "llc");
  EXPECT_EQ(memory.dram().writes, reference.llc.write_backs);
  EXPECT_GT(memory.llc().misses[0][0], 0u);
  EXPECT_EQ(memory.inconsistencies(), std::vector<std::string>{});
}

TEST(MemorySystem, CountsWhatANaiveHierarchyCountsOnRandomAccesses) {
  for (const uint64_t footprint : {2048, 8192, 32768, 65536}) {
    std::mt19937_64 random(footprint);
    compare(small_machine(1), 50'000, [&](int) -> std::pair<Access, Address> {
      const uint64_t kind = random() % 10;
      // Code apart from data: fetched lines are shared, which costs an upgrade when they are written.
      if (kind < 3) return {Access::kFetch, 0x100'0000 + random() % footprint};
      return {kind < 7 ? Access::kLoad : Access::kStore, random() % (random() % 2 == 0 ? footprint : footprint / 4)};
    });
  }
}

TEST(MemorySystem, CountsWhatANaiveHierarchyCountsOnStrides) {
  for (const Address stride : {8, 64, 192, 4096}) {
    compare(small_machine(1), 20'000, [&](int i) -> std::pair<Access, Address> {
      return {i % 3 == 0 ? Access::kStore : Access::kLoad, static_cast<Address>(i) * stride % 40'000};
    });
  }
}

TEST(MemorySystem, CountsWhatANaiveHierarchyCountsOnAFullMachine) {
  std::mt19937_64 random(1);
  compare(Machine{}, 300'000, [&](int) -> std::pair<Access, Address> {
    return {random() % 3 == 0 ? Access::kStore : Access::kLoad, random() % (random() % 4 == 0 ? 4 << 20 : 100'000)};
  });
}

// --- MESI ---

constexpr State I = State::kInvalid;
constexpr State S = State::kShared;
constexpr State E = State::kExclusive;
constexpr State M = State::kModified;

// Latencies of small_machine without translation.
constexpr Cycles kL1 = 4;
constexpr Cycles kFetchL1 = 3;
constexpr Cycles kL2 = 12;
constexpr Cycles kLlc = 24;
constexpr Cycles kTransfer = 20;
constexpr Cycles kInvalidate = 12;
constexpr Cycles kFurther = 3;
constexpr Cycles kFromDram = ~Cycles{0};

struct Row {
  State a, b, c;  // states before, of cores 0, 1 and 2
  unsigned core;  // that acts
  Access access;
  State a1, b1, c1;  // after
  Cycles latency;
  Level level;
  const char* asked;  // the cores that have to answer
};

constexpr Access L = Access::kLoad;
constexpr Access W = Access::kStore;
constexpr Access F = Access::kFetch;

const Row kRows[] = {
    // Nobody has it.
    {I, I, I, 0, L, E, I, I, kFromDram, Level::kDram, ""},
    {I, I, I, 0, W, M, I, I, kFromDram, Level::kDram, ""},
    {I, I, I, 0, F, S, I, I, kFromDram, Level::kDram, ""},
    // A has it exclusively.
    {E, I, I, 0, L, E, I, I, kL1, Level::kL1, ""},
    {E, I, I, 0, W, M, I, I, kL1, Level::kL1, ""},
    {E, I, I, 0, F, E, I, I, kFetchL1 + kL2, Level::kL2, ""},
    {E, I, I, 1, L, S, S, I, kL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    {E, I, I, 1, W, I, M, I, kL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    {E, I, I, 1, F, S, S, I, kFetchL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    // A has written it.
    {M, I, I, 0, L, M, I, I, kL1, Level::kL1, ""},
    {M, I, I, 0, W, M, I, I, kL1, Level::kL1, ""},
    {M, I, I, 0, F, M, I, I, kFetchL1 + kL2, Level::kL2, ""},
    {M, I, I, 1, L, S, S, I, kL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    {M, I, I, 1, W, I, M, I, kL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    {M, I, I, 1, F, S, S, I, kFetchL1 + kL2 + kLlc + kTransfer, Level::kPeer, "0"},
    // A and C share it.
    {S, I, S, 0, L, S, I, S, kL1, Level::kL1, ""},
    {S, I, S, 0, W, M, I, I, kL1 + kL2 + kLlc + kInvalidate, Level::kPeer, "2"},
    {S, I, S, 0, F, S, I, S, kFetchL1 + kL2, Level::kL2, ""},
    {S, I, S, 1, L, S, S, S, kL1 + kL2 + kLlc, Level::kLlc, ""},
    {S, I, S, 1, W, I, M, I, kL1 + kL2 + kLlc + kInvalidate + kFurther, Level::kPeer, "02"},
    {S, I, S, 1, F, S, S, S, kFetchL1 + kL2 + kLlc, Level::kLlc, ""},
    // A and B share it.
    {S, S, I, 0, L, S, S, I, kL1, Level::kL1, ""},
    {S, S, I, 0, W, M, I, I, kL1 + kL2 + kLlc + kInvalidate, Level::kPeer, "1"},
    {S, S, I, 0, F, S, S, I, kFetchL1 + kL2, Level::kL2, ""},
    {S, S, I, 1, L, S, S, I, kL1, Level::kL1, ""},
    {S, S, I, 1, W, I, M, I, kL1 + kL2 + kLlc + kInvalidate, Level::kPeer, "0"},
    {S, S, I, 1, F, S, S, I, kFetchL1 + kL2, Level::kL2, ""},
    // A alone has it shared, as code: to write it it must ask the directory, which asks nobody.
    {S, I, I, 0, W, M, I, I, kL1 + kL2 + kLlc, Level::kLlc, ""},
    {S, I, I, 0, L, S, I, I, kL1 + kL2, Level::kL2, ""},
    {S, I, I, 0, F, S, I, I, kFetchL1, Level::kL1, ""},
    {S, I, I, 1, L, S, S, I, kL1 + kL2 + kLlc, Level::kLlc, ""},
    {S, I, I, 1, W, I, M, I, kL1 + kL2 + kLlc + kInvalidate, Level::kPeer, "0"},
    {S, I, I, 1, F, S, S, I, kFetchL1 + kL2 + kLlc, Level::kLlc, ""},
};

TEST(Mesi, EveryPairOfStateAndOperation) {
  const Machine machine = small_machine(3);
  for (size_t number = 0; number < std::size(kRows); ++number) {
    const Row& row = kRows[number];
    SCOPED_TRACE("row " + std::to_string(number));
    MemorySystem memory(machine);
    Cycles at = 0;
    // TLBs know the page; then the states.
    for (unsigned core = 0; core < 3; ++core) {
      memory.load(core, 64, at += 10'000, kProgram);
      memory.fetch(core, 64, at += 10'000, kProgram);
    }
    const State before[] = {row.a, row.b, row.c};
    const bool alone = (row.a != I) + (row.b != I) + (row.c != I) == 1;
    for (unsigned core = 0; core < 3; ++core) {
      const Access access = before[core] == M ? W : before[core] == S && alone ? F : L;
      if (before[core] != I) request(memory, core, access, 0, at += 10'000);
    }
    for (unsigned core = 0; core < 3; ++core) ASSERT_EQ(memory.state_of(core, 0), before[core]);
    uint64_t asked[3];
    for (unsigned core = 0; core < 3; ++core) asked[core] = memory.coherence(core).asked;

    at += 10'000;
    const Reply reply = request(memory, row.core, row.access, 0, at);
    const State after[] = {row.a1, row.b1, row.c1};
    for (unsigned core = 0; core < 3; ++core) {
      EXPECT_EQ(memory.state_of(core, 0), after[core]) << "core " << core;
      const bool expected = std::string_view(row.asked).find(static_cast<char>('0' + core)) != std::string_view::npos;
      EXPECT_EQ(memory.coherence(core).asked - asked[core], expected ? 1u : 0u) << "core " << core;
      EXPECT_EQ(memory.cached(core, 0), after[core] != I);
    }
    EXPECT_EQ(reply.level, row.level);
    if (row.latency == kFromDram) {
      EXPECT_GT(latency(reply, at), kL1 + kL2 + kLlc + kTransfer);
    } else {
      EXPECT_EQ(latency(reply, at), row.latency);
    }
    EXPECT_EQ(memory.inconsistencies(), std::vector<std::string>{});
  }
}

TEST(Mesi, StatisticsNameTheRequester) {
  MemorySystem memory(small_machine(2));
  memory.store(0, 0, 0, kProgram);
  memory.load(1, 0, 10'000, kAllocator);
  memory.store(1, 0, 20'000, kAllocator);
  EXPECT_EQ(memory.coherence(1).transfers[index_of(kAllocator)], 1u);
  EXPECT_EQ(memory.coherence(1).upgrades[index_of(kAllocator)], 1u);
  EXPECT_EQ(memory.coherence(1).invalidated[index_of(kAllocator)], 1u);
  EXPECT_EQ(memory.coherence(1).transfers[index_of(kProgram)], 0u);
  EXPECT_EQ(memory.coherence(0).asked, 2u);
  EXPECT_EQ(memory.l1d(0).invalidations, 1u);
  EXPECT_EQ(memory.l2(0).invalidations, 1u);
}

TEST(Mesi, ALineIsContendedWhereTheOtherCoreHadJustGotIt) {
  const Machine machine = small_machine(2);
  MemorySystem memory(machine);
  memory.store(0, 0, 0, kProgram);
  memory.store(1, 0, 10'000, kProgram);  // the other one had it for long
  EXPECT_EQ(memory.coherence(1).contended, 0u);
  memory.store(0, 0, 10'000 + machine.quantum, kProgram);
  EXPECT_EQ(memory.coherence(0).contended, 1u);
  memory.load(1, 0, 20'000, kProgram);   // reading is not competing
  memory.store(0, 0, 20'300, kProgram);  // but taking from a reader is
  EXPECT_EQ(memory.coherence(1).contended, 0u);
  EXPECT_EQ(memory.coherence(0).contended, 2u);
  memory.store(1, 0, 20'000, kProgram);  // of a core that is behind in time
  EXPECT_EQ(memory.coherence(1).contended, 1u);
}

TEST(Mesi, ADirtyLineThatWasSharedIsWrittenToMemoryAtTheEnd) {
  MemorySystem memory(small_machine(2));
  memory.store(0, 0, 0, kProgram);
  memory.load(1, 0, 10'000, kProgram);  // the last level has the new data now
  for (Address i = 1; i <= 8; ++i) memory.load(1, i * 2048, 20'000 + i * 1000, kProgram);  // its set in the last level
  EXPECT_FALSE(memory.in_llc(0));
  EXPECT_EQ(memory.dram().writes, 1u);
}

// From the end of one owner's access to the next one's data: the directory hears of it, looks up and asks the owner.
constexpr Cycles kHandOver = kLlc + kTransfer;

TEST(Contention, StoresQueueUntilTheOwnersAccessIsDone) {
  MemorySystem memory(small_machine(8));
  for (unsigned core = 0; core < 8; ++core) memory.load(core, 64, core * 1000, kProgram);
  memory.store(0, 0, 10'000, kProgram);
  Cycles ready = 0;
  for (unsigned core = 1; core < 8; ++core) {
    const Reply reply = memory.store(core, 0, 20'000, kProgram);
    EXPECT_EQ(reply.level, Level::kPeer);
    EXPECT_EQ(reply.ready, core == 1 ? 20'000 + kL1 + kL2 + kLlc + kTransfer : ready + kHandOver);
    if (core > 1) {
      EXPECT_EQ(memory.coherence(core).queue_cycles[0], ready - (20'000 + kL1 + kL2));
    }
    ready = reply.ready;
  }
}

TEST(Contention, ALockedInstructionKeepsTheLineUntilItIsDone) {
  constexpr Cycles kHold = 14;
  MemorySystem memory(small_machine(3));
  for (unsigned core = 0; core < 3; ++core) memory.load(core, 64, core * 1000, kProgram);
  const Reply first = memory.lock(0, 0, 10'000, kHold, kProgram);
  const Reply second = memory.lock(1, 0, 10'001, kHold, kProgram);
  EXPECT_EQ(second.ready, first.ready + kHold + kHandOver);
  // In the owner's L1 too.
  const Reply again = memory.lock(1, 0, 20'000, kHold, kProgram);
  EXPECT_EQ(again.ready, 20'000 + kL1);
  EXPECT_EQ(memory.lock(2, 0, 20'000 - kL2 - kLlc, kHold, kProgram).ready, again.ready + kHold + kHandOver);
}

// So the line changes hands at the parameters' own rate, however many cores want it and whoever is a little ahead.
TEST(Contention, IncrementsOfOneCounterNeverGetCheaperWithMoreCores) {
  constexpr Cycles kHold = 14;
  Cycles before = 0;
  for (const unsigned cores : {1, 2, 4, 8, 16, 64, 128}) {
    Machine machine = small_machine(cores);
    machine.llc.bytes = 8 << 20;
    MemorySystem memory(machine);
    for (unsigned core = 0; core < cores; ++core) memory.load(core, 64, core * 1000, kProgram);
    constexpr Cycles kStart = 1'000'000;
    std::vector<Cycles> clock(cores, kStart);
    constexpr Cycles kIncrements = 25'600;
    for (Cycles i = 0; i < kIncrements; ++i) {
      const auto core = static_cast<unsigned>(std::min_element(clock.begin(), clock.end()) - clock.begin());
      clock[core] = memory.lock(core, 0, clock[core], kHold, kProgram).ready + kHold;
    }
    const Cycles each = (*std::max_element(clock.begin(), clock.end()) - kStart) / kIncrements;
    EXPECT_GE(each, before) << cores;
    EXPECT_GE(each, cores == 1 ? kL1 + kHold : kHandOver + kHold) << cores;
    before = each;
  }
}

TEST(Contention, RefusedRequestsComeAgain) {
  Machine machine = small_machine(2);
  machine.coherence.retry = 100;
  MemorySystem memory(machine);
  for (unsigned core = 0; core < 2; ++core) memory.load(core, 64, core * 1000, kProgram);
  memory.store(0, 0, 10'000, kProgram);
  memory.lock(0, 0, 20'000, 14, kProgram);  // busy until 20'000 + 4 + 14 + 24
  const Reply reply = memory.store(1, 0, 20'000 - kL2, kProgram);
  EXPECT_EQ(reply.ready, 20'000 + kL1 + kLlc + 100 + kTransfer);
}

TEST(Contention, FarAtomicsAreDoneAtTheLastLevel) {
  Machine machine = small_machine(4);
  machine.coherence.atomics = "far";
  machine.coherence.far = 6;
  MemorySystem memory(machine);
  for (unsigned core = 0; core < 4; ++core) memory.load(core, 64, core * 1000, kProgram);
  memory.store(0, 0, 10'000, kProgram);
  const Reply taken = memory.lock(1, 0, 20'000, 14, kProgram);
  EXPECT_EQ(latency(taken, 20'000), kL1 + kL2 + kLlc + kTransfer + 6);
  EXPECT_FALSE(memory.cached(0, 0));
  EXPECT_FALSE(memory.cached(1, 0));
  // From then on they queue for the operation alone.
  for (unsigned core = 0; core < 4; ++core) {
    EXPECT_EQ(latency(memory.lock(core, 0, 30'000, 14, kProgram), 30'000), kL1 + kL2 + kLlc + (core + 1) * 6);
  }
  EXPECT_EQ(memory.coherence(3).far[0], 1u);
  EXPECT_EQ(memory.inconsistencies(), std::vector<std::string>{});
}

TEST(Contention, ALeadingCoreDoesNotDelayTheOthers) {
  MemorySystem memory(small_machine(3));
  for (unsigned core = 0; core < 3; ++core) memory.load(core, 64, 0, kProgram);
  memory.store(0, 0, 10'000, kProgram);
  memory.store(1, 0, 21'000, kProgram);  // ahead by a quantum
  const Reply reply = memory.store(2, 0, 20'000, kProgram);
  EXPECT_EQ(latency(reply, 20'000), kL1 + kL2 + kLlc + kTransfer);
}

// --- New pages ---

Machine with_clearing(const char* how, uint32_t cores = 1) {
  Machine machine;
  machine.cores = cores;
  machine.llc.bytes = uint64_t{cores} << 21;
  machine.pages.clearing = how;
  machine.pages.fault_us = 0.4;
  return machine;
}

Reply first_touch(MemorySystem& memory, Address page, Cycles at) {
  memory.pages().map(page, page + 4096, PageKind::kAnonymous);
  return memory.load(0, page, at, kProgram);
}

TEST(NewPages, AreFoundInTheCachesWhereTheKernelClearedThem) {
  const Machine machine = with_clearing("allocate");
  MemorySystem memory(machine);
  const Reply reply = first_touch(memory, 0x10000, 0);
  EXPECT_GT(reply.fault, machine.from_us(0.4) + 64 * machine.pages.clear_line);
  EXPECT_EQ(reply.level, Level::kL1);
  for (Address line = 0; line < 64; ++line) {
    EXPECT_EQ(memory.load(0, 0x10000 + line * 64, 10'000 + line * 100, kProgram).level, Level::kL1);
  }
  EXPECT_EQ(memory.dram().reads, 0u);
  EXPECT_EQ(memory.l1d(0).misses[kKernel][index_of(Access::kStore)], 64u);
  EXPECT_EQ(memory.l1d(0).misses[0][0], 0u);
}

TEST(NewPages, CostWhatTheirClearingSays) {
  MemorySystem none(with_clearing("none"));
  MemorySystem allocate(with_clearing("allocate"));
  MemorySystem fetch(with_clearing("fetch"));
  MemorySystem around(with_clearing("non-temporal"));
  EXPECT_EQ(first_touch(none, 0x10000, 0).fault, with_clearing("none").from_us(0.4));
  EXPECT_EQ(none.load(0, 0x10040, 10'000, kProgram).level, Level::kDram);
  const Cycles allocated = first_touch(allocate, 0x10000, 0).fault;
  EXPECT_GT(first_touch(fetch, 0x10000, 0).fault, allocated + 100);
  EXPECT_EQ(fetch.dram().reads, 64u);
  EXPECT_GT(first_touch(around, 0x10000, 0).fault, allocated);
  EXPECT_EQ(around.dram().writes, 64u);
  EXPECT_EQ(around.load(0, 0x10040, 10'000, kProgram).level, Level::kDram);
}

TEST(NewPages, HugeOnesAlike) {
  Machine machine = with_clearing("allocate");
  machine.pages.huge_pages = "always";
  MemorySystem memory(machine);
  memory.pages().map(0, 2 << 20, PageKind::kAnonymous);
  const Reply reply = memory.load(0, 0x5000, 0, kProgram);
  EXPECT_GE(reply.fault, machine.from_us(machine.pages.huge_fault_us) + 32768 * machine.pages.clear_line);
  EXPECT_EQ(memory.load(0, 0x5fc0, 10'000'000, kProgram).level, Level::kL1);  // the page touched comes last
  EXPECT_EQ(memory.load(0, 0x100000, 10'000'000, kProgram).level, Level::kLlc);
  EXPECT_EQ(memory.dram().reads, 0u);
}

// What a page's clearing evicts is its toucher's doing.
TEST(NewPages, EvictionsAreTheTouchers) {
  Machine machine = with_clearing("allocate");
  machine.l2.bytes = machine.l1d.bytes + machine.l1i.bytes;
  MemorySystem memory(machine);
  memory.load(0, 0x100000, 0, kProgram);
  for (Address page = 0; page < 64; ++page) {
    memory.pages().map(page << 12, (page + 1) << 12, PageKind::kAnonymous);
    memory.load(0, page << 12, 10'000 * (page + 1), kAllocator);
  }
  memory.load(0, 0x100000, 10'000'000, kProgram);
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kEvicted], 1u);
}

// --- Cores of several kinds ---

TEST(Kinds, ACoreWithoutAnL2AsksTheLastLevel) {
  Machine machine = small_machine(1);
  OtherCores little;
  little.l1d = {.bytes = 1024, .ways = 4, .latency = 2, .mshrs = 16};
  little.l1i = little.l1d;
  little.l2.bytes = 0;
  machine.others.push_back(little);
  MemorySystem memory(machine);
  for (unsigned core = 0; core < 2; ++core) memory.load(core, 64, core * 1000, kProgram);
  const Cycles dram = Dram(machine).read(0, 0);
  EXPECT_EQ(latency(memory.load(1, 4096 - 64, 10'000, kProgram), 10'000) > 2 + kLlc + dram / 2, true);
  memory.store(1, 0, 20'000, kProgram);
  EXPECT_EQ(memory.state_of(1, 0), M);
  EXPECT_EQ(latency(memory.load(1, 0, 30'000, kProgram), 30'000), 2u);
  EXPECT_EQ(latency(memory.load(0, 0, 40'000, kProgram), 40'000), kL1 + kL2 + kLlc + kTransfer);
  EXPECT_EQ(memory.state_of(1, 0), S);
  EXPECT_EQ(latency(memory.store(1, 0, 50'000, kProgram), 50'000), 2 + kLlc + kInvalidate);
  EXPECT_EQ(memory.state_of(0, 0), I);
  EXPECT_EQ(memory.inconsistencies(), std::vector<std::string>{});
}

// --- Inclusion ---

TEST(Inclusion, AnL2EvictionEmptiesTheL1s) {
  Machine machine = small_machine(1);
  machine.l2 = {.bytes = 1024, .ways = 1, .latency = 12};
  MemorySystem memory(machine);
  memory.store(0, 0, 0, kProgram);
  memory.fetch(0, 0, 10'000, kProgram);
  memory.load(0, 1024, 20'000, kProgram);
  EXPECT_FALSE(memory.cached(0, 0));
  EXPECT_EQ(memory.l1d(0).invalidations, 1u);
  EXPECT_EQ(memory.l1i(0).invalidations, 1u);
  EXPECT_EQ(memory.l2(0).write_backs[0], 1u);
  const Reply reply = memory.load(0, 0, 30'000, kProgram);
  EXPECT_EQ(reply.level, Level::kLlc);
}

TEST(Inclusion, ALastLevelEvictionEmptiesAllCores) {
  MemorySystem memory(small_machine(4));
  for (unsigned core = 0; core < 3; ++core) memory.load(core, 0, core * 10'000, kProgram);
  for (Address i = 1; i <= 8; ++i) memory.load(3, i * 2048, 50'000 + i * 1000, kAllocator);
  for (unsigned core = 0; core < 3; ++core) EXPECT_FALSE(memory.cached(core, 0));
  EXPECT_EQ(memory.llc().evictions[index_of(kAllocator)], 1u);
  EXPECT_EQ(memory.dram().writes, 0u);
}

TEST(Inclusion, HoldsUnderRandomTrafficOfManyCores) {
  for (const char* prefetcher : {"none", "next-line", "stride"}) {
    Machine machine = small_machine(6);
    machine.others.resize(1);
    machine.others[0].cores = 2;
    machine.others[0].l1d = {.bytes = 512, .ways = 2, .latency = 3, .mshrs = 4, .prefetcher = prefetcher};
    machine.others[0].l1i = machine.others[0].l1d;
    machine.others[0].l2.bytes = 0;
    for (CacheParameters* cache : {&machine.l1i, &machine.l1d, &machine.l2, &machine.llc}) {
      cache->prefetcher = prefetcher;
      cache->mshrs = 4;
    }
    MemorySystem memory(machine);
    std::mt19937_64 random(17);
    Cycles clock[8] = {};
    for (int i = 0; i < 60'000; ++i) {
      const auto core = static_cast<unsigned>(random() % 8);
      const Cycles at = clock[core];
      const Address address = random() % (random() % 2 == 0 ? 65536 : 2048);
      const Origin origin = random() % 4 == 0 ? kAllocator : kProgram;
      const auto kind = static_cast<Access>(random() % 3);
      const Reply reply = kind == Access::kStore && random() % 4 == 0
                              ? memory.lock(core, address, at, 14, origin)
                              : request(memory, core, kind, address, at, origin);
      ASSERT_GE(reply.ready, at + 3 + reply.translation + reply.fault);
      clock[core] += random() % 20;
      if (i % 500 == 0) {
        ASSERT_EQ(memory.inconsistencies(), std::vector<std::string>{}) << prefetcher << ", access " << i;
      }
    }
  }
}

// --- The allocator's share of misses ---

TEST(AllocatorShare, MissesByTheAllocatorsPart) {
  Machine machine = small_machine(1);
  machine.l1d = {.bytes = 64, .ways = 1, .latency = 4};
  machine.l1i = machine.l1d;
  machine.l2 = {.bytes = 64, .ways = 1, .latency = 12};
  MemorySystem memory(machine);
  Cycles at = 0;
  const auto load = [&](Address line, Origin origin) { return memory.load(0, line * 64, at += 10'000, origin); };
  const Reply first = load(1, kProgram);
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kOther], 1u);
  EXPECT_EQ(memory.attribution().miss_times(0)[Blame::kOther], latency(first, at) - 4 - 12);
  load(2, kAllocator);  // evicts 1
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kInside], 1u);
  load(1, kProgram);  // evicts 2
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kEvicted], 1u);
  load(2, kProgram);
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kTouched], 1u);
  load(3, kAllocator);
  load(4, kAllocator);  // evicts 3
  const Reply both = load(3, kProgram);
  EXPECT_EQ(both.level, Level::kLlc);
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kEvictedAndTouched], 1u);
  EXPECT_EQ(memory.attribution().miss_times(0)[Blame::kEvictedAndTouched], 24u);
  load(4, kProgram);  // evicted by the program's own access; the allocator's last
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kTouched], 2u);
  load(3, kProgram);
  EXPECT_EQ(memory.attribution().misses(0)[Blame::kOther], 2u);
}

TEST(AllocatorShare, TheLastUseCountsInEveryCacheAndInMemory) {
  MemorySystem memory(small_machine(2));
  Cycles at = 0;
  // Fetched by the program, used last by the allocator, in the L1 only; then another core's program takes it.
  memory.load(0, 0, at += 10'000, kProgram);
  memory.store(0, 0, at += 10'000, kAllocator);
  memory.load(1, 0, at += 10'000, kProgram);
  EXPECT_EQ(memory.attribution().misses(1)[Blame::kTouched], 1u);
  // Used by the allocator, then long gone from all caches.
  memory.load(0, 1 << 20, at += 10'000, kAllocator);
  for (Address i = 1; i <= 8; ++i) memory.load(0, (1 << 20) + i * 2048, at += 10'000, kProgram);
  EXPECT_FALSE(memory.in_llc(1 << 20));
  memory.load(1, 1 << 20, at += 10'000, kProgram);
  EXPECT_EQ(memory.attribution().misses(1)[Blame::kTouched], 2u);
  // Once used by the program, it is the program's.
  for (Address i = 1; i <= 8; ++i) memory.load(0, (1 << 20) + i * 2048, at += 10'000, kProgram);
  memory.load(1, 1 << 20, at += 10'000, kProgram);
  EXPECT_EQ(memory.attribution().misses(1)[Blame::kTouched], 2u);
}

TEST(LineSet, HoldsLines) {
  LineSet set;
  std::set<Address> reference;
  std::mt19937_64 random(8);
  for (int i = 0; i < 20'000; ++i) {
    const Address line = random() % 30'000;
    if (random() % 2 == 0) {
      set.insert(line);
      reference.insert(line);
    } else {
      ASSERT_EQ(set.erase(line), reference.erase(line) == 1);
    }
  }
  for (Address line = 0; line < 30'000; ++line) ASSERT_EQ(set.contains(line), reference.count(line) == 1);
}

// --- Prefetching ---

TEST(Prefetching, NextLineHalvesTheMissesOfASequence) {
  Machine machine;
  machine.l1d.prefetcher = "next-line";
  MemorySystem memory(machine);
  for (Address line = 0; line < 64; ++line) memory.load(0, line * 64, line * 1000, kProgram);
  EXPECT_EQ(memory.l1d(0).misses[0][0], 32u);
  EXPECT_EQ(memory.caches(0).l1d_prefetcher.statistics.issued, 32u);
  EXPECT_EQ(memory.caches(0).l1d_prefetcher.statistics.useful, 32u);
  EXPECT_EQ(memory.pages().resident_bytes(), 4096u);  // it stays within the page
  EXPECT_FALSE(memory.in_llc(4096));
}

TEST(Prefetching, StrideLearnsAndRunsAhead) {
  Machine machine;
  machine.l2.prefetcher = "stride";
  MemorySystem memory(machine);
  uint64_t from_l2 = 0;
  for (Address i = 0; i < 21; ++i) {
    from_l2 += memory.load(0, i * 192, 100'000 + i * 1000, kProgram).level == Level::kL2 ? 1 : 0;
  }
  EXPECT_EQ(memory.l2(0).misses[0][0], 3u);  // two steps to learn
  EXPECT_EQ(from_l2, 18u);
  EXPECT_EQ(memory.caches(0).l2_prefetcher.statistics.useful, 18u);
  EXPECT_EQ(memory.caches(0).l1d_prefetcher.statistics.issued, 0u);
}

TEST(Prefetching, IsDroppedWhenNoRegisterIsFree) {
  Machine machine;
  machine.l1d.prefetcher = "next-line";
  machine.l1d.mshrs = 1;
  MemorySystem memory(machine);
  const Reply reply = memory.load(0, 0, 100'000, kProgram);
  EXPECT_EQ(memory.caches(0).l1d_prefetcher.statistics.issued, 0u);
  EXPECT_EQ(memory.caches(0).l1d_prefetcher.statistics.dropped, 1u);
  machine.l1d.prefetcher = "none";
  MemorySystem without(machine);
  EXPECT_EQ(without.load(0, 0, 100'000, kProgram).ready, reply.ready);
}

// --- The whole ---

nlohmann::json traffic(MemorySystem& memory) {
  std::mt19937_64 random(23);
  Cycles at = 0;
  for (int i = 0; i < 50'000; ++i) {
    request(memory, static_cast<unsigned>(random() % 4), static_cast<Access>(random() % 3), random() % (4 << 20),
            at += random() % 10, random() % 4 == 0 ? kAllocator : kProgram);
  }
  nlohmann::json json;
  memory.to_json(json, at);
  return json;
}

TEST(MemorySystem, TheSameRequestsGetTheSameAnswers) {
  Machine machine;
  machine.cores = 4;
  machine.l2.prefetcher = "stride";
  MemorySystem first(machine);
  MemorySystem second(machine);
  const std::string expected = traffic(first).dump();
  EXPECT_EQ(traffic(second).dump(), expected);
  // After a reset too, if the pages are as they were.
  second.reset();
  second.pages().drop(0, 8 << 20);
  second.reset();
  EXPECT_EQ(traffic(second).dump(), expected);
}

TEST(MemorySystem, StatisticsAsJson) {
  MemorySystem memory(small_machine(2));
  memory.load(1, 0, 0, kAllocator);
  memory.load(1, 0, 10'000, kProgram);
  nlohmann::json json;
  memory.to_json(json, 20'000);
  EXPECT_EQ(json["cores"].size(), 2u);
  EXPECT_EQ(json["cores"][1]["l1d"]["accesses"]["program"]["load"], 1);
  EXPECT_EQ(json["cores"][1]["l1d"]["misses"]["allocator"]["load"], 1);
  EXPECT_EQ(json["cores"][1]["l1d"]["hits"], 1);
  EXPECT_EQ(json["cores"][1]["dtlb"]["accesses"], 2);
  EXPECT_EQ(json["cores"][1]["l2_misses"]["inside"], 1);
  EXPECT_EQ(json["llc"]["misses"]["allocator"]["load"], 1);
  EXPECT_EQ(json["dram"]["reads"], 1);
  EXPECT_EQ(json["pages"]["faults"]["allocator"]["file"], 1);
  EXPECT_EQ(json["pages"]["resident"], 4096);
  memory.reset_statistics(20'000);
  nlohmann::json after;
  memory.to_json(after, 30'000);
  EXPECT_EQ(after["cores"][1]["l1d"]["hits"], 0);
  EXPECT_EQ(after["pages"]["average_resident"], 4096.0);
}

}  // namespace
}  // namespace annex::sim
