// Walks of the page table: which entries they read, in what order, and what upper levels' caches and walkers do.
#include "machine/page_walker.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "machine/memory_system.h"
#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Address kSmallBytes = Address{1} << kPageShift;
constexpr Address kHugeBytes = Address{1} << kHugePageShift;
constexpr Cycles kRead = 10;

// A walker whose reads take kRead each, and what they were of.
struct Walked {
  explicit Walked(const WalkerParameters& parameters) : walker(parameters) {}

  // At a time when all walkers are free.
  Cycles operator()(Address address, bool huge = false) { return at(now += 10'000, address, huge); }
  Cycles at(Cycles at, Address address, bool huge = false) {
    entries.clear();
    return walker.walk(
               address, huge, at, [](Address page) { return page; },
               [&](Address entry, Cycles from) {
                 entries.push_back(entry);
                 return from + kRead;
               }) -
           at;
  }

  PageWalker walker;
  std::vector<Address> entries;
  Cycles now = 0;
};

constexpr auto entry = PageWalker::entry_of;

TEST(PageWalker, ReadsALevelAfterTheOther) {
  Walked walk({.reads = "tables"});
  EXPECT_EQ(walk(0x123456789000), 4 * kRead);
  const Address page = 0x123456789;
  EXPECT_EQ(walk.entries, (std::vector{entry(4, page), entry(3, page), entry(2, page), entry(1, page)}));
  EXPECT_EQ(walk.walker.statistics.reads, 4u);
}

TEST(PageWalker, BeginsBelowWhatIsKnown) {
  Walked walk({.reads = "tables"});
  walk(0);
  EXPECT_EQ(walk(kSmallBytes), 1 * kRead);
  EXPECT_EQ(walk.entries, std::vector{entry(1, 1)});
  EXPECT_EQ(walk(kHugeBytes), 2 * kRead);
  EXPECT_EQ(walk(Address{1} << 30), 3 * kRead);
  EXPECT_EQ(walk(Address{1} << 39), 4 * kRead);
  walk.walker.forget();
  EXPECT_EQ(walk(2 * kSmallBytes), 4 * kRead);
}

TEST(PageWalker, AHugePageHasNoLowestLevel) {
  Walked walk({.reads = "tables"});
  EXPECT_EQ(walk(0, true), 3 * kRead);
  EXPECT_EQ(walk.entries.back(), entry(2, 0));
  EXPECT_EQ(walk(kHugeBytes, true), 1 * kRead);
  // Its entry says where the data are, and is no table's: what lies beside in pages of 4 KiB is not known by it.
  EXPECT_EQ(walk(kSmallBytes), 2 * kRead);
}

TEST(PageWalker, KnowsSoManyRegions) {
  Walked walk({.reads = "tables", .entries = 2});
  walk(0);
  walk(kHugeBytes);
  EXPECT_EQ(walk(0), 1 * kRead);
  walk(2 * kHugeBytes);  // in the place of the one that was not used for longest
  EXPECT_EQ(walk(0), 1 * kRead);
  EXPECT_EQ(walk(kHugeBytes), 2 * kRead);
}

TEST(PageWalker, WalksWaitForAWalker) {
  Walked walk({.reads = "tables", .walkers = 2});
  walk(0);
  EXPECT_EQ(walk.at(20'000, 1 * kSmallBytes), kRead);
  EXPECT_EQ(walk.at(20'001, 2 * kSmallBytes), kRead);
  EXPECT_EQ(walk.at(20'002, 3 * kSmallBytes), 8 + kRead);  // until the first is done
  EXPECT_EQ(walk.walker.statistics.waited, 8u);
}

TEST(PageWalker, AHypervisorsTablesAreReadForEachAddress) {
  Walked walk({.reads = "nested tables"});
  EXPECT_EQ(walk(0x5000), (2 * 4 + 1) * kRead);
  EXPECT_EQ(walk.entries[0], entry(PageWalker::kHypervisor, page_of(entry(4, 5))));
  EXPECT_EQ(walk.entries[1], entry(4, 5));
  EXPECT_EQ(walk.entries.back(), entry(PageWalker::kHypervisor, 5));
  EXPECT_EQ(walk(0x6000), 3 * kRead);
}

TEST(PageWalker, EntriesOfLevelsAndProgramsAreApart) {
  constexpr Address kLast = (Address{1} << 35) - 1;  // page of a program's half
  std::set<Address> lines;
  for (const Address page : {Address{0}, kLast}) {
    for (unsigned level = 1; level <= 4; ++level) {
      EXPECT_TRUE(lines.insert(entry(level, page)).second || page == 0);
      EXPECT_GT(page_of(entry(level, page)), kLast);
      EXPECT_LT(page_of(entry(level, page)), Address{1} << 36);
    }
  }
  for (unsigned level = 1; level < 5; ++level) EXPECT_LT(entry(level, (Address{1} << 36) - 1), entry(level + 1, 0));
  EXPECT_EQ(entry(1, 8) - entry(1, 0), kLine);  // eight in a line
}

// --- in the memory system ---

Machine walking(const char* reads) {
  Machine machine = plain_machine();
  machine.dtlb = {.entries = 1, .ways = 1};
  machine.stlb = {.entries = 1, .ways = 1, .latency = 7};
  machine.pages.walk = 30;
  machine.walker.reads = reads;
  return machine;
}

TEST(PageWalker, EntriesComeThroughTheCaches) {
  const Machine machine = walking("tables");
  MemorySystem memory(machine);
  const Cycles kL1 = machine.l1d.latency;
  const Cycles kBeyond = kL1 + machine.l2.latency + machine.llc.latency;
  const Reply first = memory.load(0, 0, 0, Origin::kProgram);
  EXPECT_GT(first.translation, 7 + 4 * kBeyond);
  EXPECT_EQ(memory.load(0, 1 * kSmallBytes, 100'000, Origin::kProgram).translation, 7 + kL1);      // the same line
  EXPECT_GT(memory.load(0, 8 * kSmallBytes, 200'000, Origin::kProgram).translation, 7 + kBeyond);  // the next one
  EXPECT_EQ(memory.load(0, 9 * kSmallBytes, 300'000, Origin::kProgram).translation, 7 + kL1);
  EXPECT_EQ(memory.walker(0).reads, 4u + 3);
  EXPECT_EQ(memory.l1d(0).accesses[kKernel][index_of(Access::kLoad)], 7u);
  EXPECT_EQ(memory.l1d(0).accesses[0][index_of(Access::kLoad)], 4u);
  EXPECT_TRUE(memory.inconsistencies().empty());
}

TEST(PageWalker, OtherwiseAWalkIsAConstant) {
  MemorySystem memory(walking("nothing"));
  for (Cycles i = 0; i < 20; ++i) {
    EXPECT_EQ(memory.load(0, i * kSmallBytes, i * 10'000, Origin::kProgram).translation, 7u + 30);
  }
  EXPECT_EQ(memory.walker(0).reads, 0u);
  EXPECT_EQ(memory.l1d(0).accesses[kKernel][index_of(Access::kLoad)], 0u);
}

TEST(PageWalker, UnmappedPagesAreWalkedForFromTheTop) {
  MemorySystem memory(walking("tables"));
  memory.load(0, 0, 0, Origin::kProgram);
  memory.shoot_down(kHugeBytes, kHugeBytes + kSmallBytes);
  memory.load(0, kSmallBytes, 100'000, Origin::kProgram);
  EXPECT_EQ(memory.walker(0).reads, 8u);
}

}  // namespace
}  // namespace annex::sim
