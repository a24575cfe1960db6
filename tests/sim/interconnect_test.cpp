// How far cores are from slices of the last level, what that adds to requests, and slices that are busy.
#include "machine/interconnect.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "machine/memory_system.h"
#include "plain_machine.h"

namespace annex::sim {
namespace {

Machine machine_of(const char* layout, uint32_t cores, uint32_t slice_cycles = 0) {
  Machine machine = plain_machine();
  machine.cores = cores;
  machine.llc.bytes = uint64_t{cores} << 21;
  machine.interconnect = {.layout = layout, .hop = 3, .slice_cycles = slice_cycles};
  return machine;
}

TEST(Interconnect, WaysInARingAndAMesh) {
  const Interconnect none(machine_of("none", 16));
  const Interconnect ring(machine_of("ring", 16));
  const Interconnect mesh(machine_of("mesh", 16));  // 4 x 4
  EXPECT_EQ(none.way(0, 15), 0u);
  EXPECT_EQ(ring.way(0, 15), 1 * 3u);
  EXPECT_EQ(ring.way(2, 10), 8 * 3u);
  EXPECT_EQ(mesh.way(0, 15), 6 * 3u);
  EXPECT_EQ(mesh.way(4, 7), 3 * 3u);
  EXPECT_EQ(mesh.way(1, 13), 3 * 3u);
  for (unsigned from = 0; from < 16; ++from) {
    EXPECT_EQ(mesh.way(from, from), 0u);
    for (unsigned to = 0; to < 16; ++to) {
      EXPECT_EQ(ring.way(from, to), ring.way(to, from));
      EXPECT_EQ(mesh.way(from, to), mesh.way(to, from));
    }
  }
  EXPECT_FALSE(none.active());
}

TEST(Interconnect, LinesAreSpreadEvenly) {
  const Interconnect mesh(machine_of("mesh", 12));
  std::array<int, 12> lines = {};
  for (Address line = 0; line < 12'000; ++line) ++lines[mesh.slice_of(line)];
  for (const int count : lines) EXPECT_NEAR(count, 1000, 150);
}

TEST(Interconnect, ASliceTakesARequestAfterTheOther) {
  Interconnect slices(machine_of("none", 2, 4));
  EXPECT_TRUE(slices.active());
  EXPECT_EQ(slices.take_up(0, 100), 100u);
  EXPECT_EQ(slices.take_up(0, 100), 104u);
  EXPECT_EQ(slices.take_up(0, 102), 108u);
  EXPECT_EQ(slices.take_up(1, 102), 102u);
  EXPECT_EQ(slices.take_up(0, 112), 112u);
  EXPECT_EQ(slices.take_up(0, 50), 50u);  // of a core that is behind in time
  EXPECT_EQ(slices.waited(), 4u + 6);
  slices.clear();
  EXPECT_EQ(slices.take_up(0, 100), 100u);
  EXPECT_EQ(slices.waited(), 0u);
}

// --- in the memory system ---

// What a request takes with that layout more than with none, the same accesses before it.
template <class Traffic>
Cycles more(const char* layout, Traffic&& traffic) {
  MemorySystem plain(machine_of("none", 16));
  MemorySystem memory(machine_of(layout, 16));
  const Cycles without = traffic(plain);
  return traffic(memory) - without;
}

TEST(Interconnect, RequestsTakeTheWayToTheSliceAndBack) {
  const Machine machine = machine_of("mesh", 16);
  const Interconnect mesh(machine);
  for (const Address line : {0, 1, 2, 77}) {
    const Address address = line << kLineShift;
    const Cycles way = mesh.way(5, mesh.slice_of(line));
    EXPECT_EQ(more("mesh", [&](MemorySystem& m) { return m.load(5, address, 0, Origin::kProgram).ready; }), 2 * way);
    EXPECT_EQ(more("mesh",
                   [&](MemorySystem& m) {  // twice for reading by others: in the last level
                     m.fetch(1, address, 0, Origin::kProgram);
                     return m.fetch(5, address, 10'000, Origin::kProgram).ready;
                   }),
              2 * way);
  }
}

TEST(Interconnect, ALineOfAnotherCoreComesFromThere) {
  const Interconnect mesh(machine_of("mesh", 16));
  for (const Address line : {0, 1, 2, 77}) {
    const Address address = line << kLineShift;
    const unsigned slice = mesh.slice_of(line);
    const auto taken = [&](MemorySystem& m) {
      m.load(3, address + 4096, 0, Origin::kProgram);  // its page is known
      m.load(12, address + 4096, 0, Origin::kProgram);
      m.store(3, address, 10'000, Origin::kProgram);
      return m.store(12, address, 20'000, Origin::kProgram).ready;
    };
    EXPECT_EQ(more("mesh", taken), mesh.way(12, slice) + mesh.way(slice, 3) + mesh.way(3, 12));
  }
}

TEST(Interconnect, ACopyThatIsFarAwayTakesLongest) {
  const Interconnect mesh(machine_of("mesh", 16));
  const auto upgraded = [&](MemorySystem& m) {
    for (const unsigned core : {0, 3, 15, 6}) m.load(core, 0, core * 10'000, Origin::kProgram);
    return m.store(6, 0, 200'000, Origin::kProgram).ready;
  };
  const unsigned slice = mesh.slice_of(0);
  Cycles farthest = 0;
  for (const unsigned core : {0, 3, 15}) farthest = std::max(farthest, mesh.way(slice, core) + mesh.way(core, 6));
  EXPECT_EQ(more("mesh", upgraded), mesh.way(6, slice) + farthest);
}

TEST(Interconnect, FarAtomicsTakeTheWayToo) {
  Machine machine = machine_of("mesh", 16);
  const Interconnect mesh(machine);
  std::vector<Cycles> ready;
  for (const char* layout : {"none", "mesh"}) {
    machine.interconnect.layout = layout;
    machine.coherence.atomics = "far";
    MemorySystem memory(machine);
    memory.lock(9, 0, 0, 14, Origin::kProgram);
    ready.push_back(memory.lock(9, 0, 100'000, 14, Origin::kProgram).ready);
  }
  EXPECT_EQ(ready[1] - ready[0], 2 * mesh.way(9, mesh.slice_of(0)));
}

TEST(Interconnect, ABusySliceHoldsOthersUp) {
  const auto last = [](uint32_t slice_cycles) {
    MemorySystem memory(machine_of("none", 16, slice_cycles));
    for (unsigned core = 0; core < 16; ++core) memory.fetch(core, 64, core * 10'000, Origin::kProgram);  // its page
    memory.fetch(0, 0, 500'000, Origin::kProgram);
    Cycles ready = 0;
    for (unsigned core = 1; core < 16; ++core) {
      ready = std::max(ready, memory.fetch(core, 0, 1'000'000, Origin::kProgram).ready);
    }
    return ready;
  };
  EXPECT_EQ(last(5) - last(0), 14 * 5u);
}

TEST(Interconnect, TheDirectoryHearsLaterOfAnOwnerFarAway) {
  const Interconnect mesh(machine_of("mesh", 16));
  constexpr unsigned kSlice = 15;  // beside who waits
  Address line = 0;
  while (mesh.slice_of(line) != kSlice) ++line;
  const Address address = line << kLineShift;
  const auto contended = [&](MemorySystem& m) {
    for (const unsigned core : {0, 15}) m.load(core, address ^ 64, 5000 * (core + 1), Origin::kProgram);  // its page
    m.store(0, address, 100'000, Origin::kProgram);
    m.lock(0, address, 200'000, 14, Origin::kProgram);
    return m.lock(15, address, 200'001, 14, Origin::kProgram).ready;
  };
  // Until the directory hears of it, then to the owner, and from there to who waits.
  EXPECT_EQ(more("mesh", contended), mesh.way(0, kSlice) + mesh.way(kSlice, 0) + mesh.way(0, 15));
}

}  // namespace
}  // namespace annex::sim
