#include "machine/machine_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace annex::sim {
namespace {

namespace fs = std::filesystem;

struct MachineFileTest : testing::Test {
  fs::path folder = fs::path(testing::TempDir()) / ("annex-machines-" + std::to_string(getpid()));
  Machine machine;

  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::vector<std::string> read(const std::string& text) {
    const fs::path file = folder / "mine.toml";
    std::ofstream(file) << text;
    machine = {};
    return read_machine(file.string(), ANNEX_PRESETS, machine);
  }
  // The one thing that is wrong, without the file's name.
  std::string problem(const std::string& text) {
    const auto problems = read(text);
    EXPECT_EQ(problems.size(), 1u);
    return problems.empty() ? "" : problems[0].substr(problems[0].find(": ") + 2);
  }
};

TEST_F(MachineFileTest, EveryPresetIsRight) {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(ANNEX_PRESETS)) {
    if (entry.is_directory()) continue;
    Machine preset;
    EXPECT_EQ(read_machine(entry.path().string(), ANNEX_PRESETS, preset), std::vector<std::string>{});
    EXPECT_EQ(preset.name, entry.path().stem().string());
    ++count;
  }
  EXPECT_GE(count, 6);
}

// Where a preset's values come from stands beside them.
TEST_F(MachineFileTest, EveryValueOfAPresetHasItsSource) {
  for (const auto& entry : fs::recursive_directory_iterator(ANNEX_PRESETS)) {
    if (entry.is_directory()) continue;
    std::ifstream file(entry.path());
    int values = 0;
    for (std::string line; std::getline(file, line);) {
      const std::string name = line.substr(0, line.find_first_of(" ="));
      if (line.empty() || line[0] == '#' || line[0] == '[') continue;
      if (name == "base" || name == "name" || name == "description") continue;
      ++values;
      const size_t comment = line.find("  # ");
      EXPECT_TRUE(comment != std::string::npos && comment + 4 < line.size()) << entry.path() << ": " << line;
    }
    EXPECT_GT(values, 0) << entry.path();
  }
}

// SpeedMalloc's Table 2.
TEST_F(MachineFileTest, ThePapersMachine) {
  ASSERT_TRUE(read_machine(ANNEX_PRESETS "/speedmalloc-16.toml", ANNEX_PRESETS, machine).empty());
  EXPECT_EQ(machine.cores, 16u);
  EXPECT_EQ(machine.l1d.bytes, 32u << 10);
  EXPECT_EQ(machine.l1d.ways, 8u);
  EXPECT_EQ(machine.l1d.latency, 4u);
  EXPECT_EQ(machine.l2.bytes, 256u << 10);
  EXPECT_EQ(machine.l2.latency, 12u);
  EXPECT_EQ(machine.llc.bytes, 32u << 20);
  EXPECT_EQ(machine.llc.ways, 16u);
  EXPECT_EQ(machine.llc.latency, 24u);
  EXPECT_DOUBLE_EQ(machine.dram.tcas_ns, 14.16);
  EXPECT_DOUBLE_EQ(machine.dram.tras_ns, 32);
}

TEST_F(MachineFileTest, WhatAFileDoesNotSayIsItsBases) {
  ASSERT_TRUE(read("base = \"haswell-1\"\n[l2]\nlatency = 11\n").empty());
  EXPECT_EQ(machine.name, "mine");
  EXPECT_DOUBLE_EQ(machine.ghz, 3.2);
  EXPECT_EQ(machine.l2.latency, 11u);
  EXPECT_EQ(machine.l2.bytes, 262144u);
}

TEST_F(MachineFileTest, AsJsonEveryParameterIsThere) {
  ASSERT_TRUE(read("base = \"haswell-1\"\n").empty());
  const auto json = to_json(machine);
  EXPECT_EQ(json["core"]["rob"], 192);
  EXPECT_EQ(json["core"]["latency"]["div"], 26);
  EXPECT_EQ(json["dram"]["bus_mts"], 1600);
  EXPECT_EQ(json["pages"]["huge_pages"], "madvise");
}

TEST_F(MachineFileTest, CoresOfOtherKindsTakeTheRestFromTheMainOnes) {
  EXPECT_EQ(read("cores = 2\n[core]\nrob = 99\n[llc]\nbytes = 4194304\n"
                 "[[kind]]\nname = \"unit\"\nthreads = \"no\"\n"
                 "[[kind]]\nname = \"little\"\ncores = 3\n[kind.core]\nkind = \"in-order\"\n[kind.l2]\nbytes = 0\n"),
            std::vector<std::string>{});
  EXPECT_EQ(machine.all_cores(), 6u);
  EXPECT_EQ(machine.thread_cores(), 5u);
  EXPECT_EQ(machine.kind_of(1).core.kind, "out-of-order");
  for (const unsigned core : {2, 3, 4}) {
    EXPECT_EQ(machine.kind_of(core).core.kind, "in-order");
    EXPECT_EQ(machine.kind_of(core).core.rob, 99u);
    EXPECT_FALSE(machine.kind_of(core).has_l2());
  }
  EXPECT_TRUE(machine.kind_of(5).has_l2());
  EXPECT_EQ(to_json(machine)["kind"][1]["name"], "unit");
}

TEST_F(MachineFileTest, OfSeveralBasesLaterOnesAddToEarlierOnes) {
  ASSERT_TRUE(read("base = [\"speedmalloc-4\", \"hardware/speedmalloc\"]\n"
                   "[support_core]\nqueue = 16\n[support_core.l1d]\nbytes = 4096\n")
                  .empty());
  EXPECT_EQ(machine.cores, 4u);
  EXPECT_EQ(machine.thread_cores(), 4u);
  EXPECT_EQ(machine.all_cores(), 5u);
  EXPECT_EQ(machine.first_of(kSupportCore), 4u);
  EXPECT_EQ(machine.support_core.queue, 16u);
  EXPECT_EQ(machine.support_core.link, 8u);
  const CoreKind& support = machine.kind_of(4);
  EXPECT_EQ(support.core.kind, "in-order");
  EXPECT_EQ(support.l1d.bytes, 4096u);
  EXPECT_EQ(support.l1i.bytes, 16384u);
  EXPECT_FALSE(support.has_l2());
  EXPECT_EQ(machine.l1d.bytes, 32768u);
}

TEST_F(MachineFileTest, ASupportCoreIsAsTheMainOnesWhereNothingElseIsSaid) {
  ASSERT_TRUE(read("[support_core]\ncores = 1\n[[kind]]\nname = \"little\"\n").empty());
  EXPECT_EQ(machine.first_of("little"), 1u);
  EXPECT_EQ(machine.first_of(kSupportCore), 2u);
  EXPECT_EQ(machine.thread_cores(), 2u);
  EXPECT_TRUE(machine.kind_of(2).has_l2());
  ASSERT_TRUE(read("base = \"hardware/speedmalloc\"\n[support_core]\ncores = 0\n").empty());
  EXPECT_EQ(machine.all_cores(), 1u);
}

TEST_F(MachineFileTest, WrongFilesAreToldInALineEach) {
  EXPECT_EQ(problem("corse = 2\n"), "corse: no such parameter (line 1)");
  EXPECT_EQ(problem("[l1d]\nsize = 3\n"), "l1d.size: no such parameter (line 2)");
  EXPECT_EQ(problem("cores = 2.5\n"), "cores: must be a whole number in cores");
  EXPECT_EQ(problem("cores = 129\n"), "cores: 129 is outside 1 to 128 cores");
  EXPECT_EQ(problem("kind = 3\n"), "kind: must be tables: [[kind]]");
  EXPECT_EQ(problem("[[kind]]\nname = \"little\"\nsize = 3\n"), "kind little: size: no such parameter (line 3)");
  EXPECT_EQ(problem("[[kind]]\n[kind.core]\nload_queue = 1000\n"), "kind 1: core: load_queue is larger than rob");
  EXPECT_EQ(problem("ghz = \"fast\"\n"), "ghz: must be a number in GHz");
  EXPECT_EQ(problem("[core]\nkind = \"magic\"\n"), "core.kind: must be one of: out-of-order, in-order");
  EXPECT_EQ(problem("l1d = 3\n"), "l1d: must be a table");
  EXPECT_EQ(problem("[l1d]\nbytes = 33000\n"),
            "l1d: bytes = 33000 is not a power of two of sets of 8 ways x 64 bytes; 32768 or 65536 would be");
  EXPECT_EQ(problem("[l2]\nallocator_ways = 8\n"), "l2: allocator_ways = 8 leaves none of 8 ways to the program");
  EXPECT_NE(problem("cores = 16\n").find("which it must contain"), std::string::npos);
  EXPECT_NE(problem("[dtlb]\nentries = 60\n").find("not a power of two of sets"), std::string::npos);
  EXPECT_EQ(read("cores = \n").size(), 1u);
  EXPECT_EQ(read("base = \"no such machine\"\n").size(), 1u);
  EXPECT_EQ(read("base = \"mine\"\n").size(), 1u);  // its own base
}

TEST_F(MachineFileTest, TheDocumentedParametersAreThoseThatCanBeSet) {
  const std::string table = describe_parameters();
  for (const char* name : {"`cores`", "`core.latency.div`", "`llc.bytes`", "`dram.tras_ns`", "`system.call_us`"}) {
    EXPECT_NE(table.find(name), std::string::npos) << name;
  }
}

TEST_F(MachineFileTest, AMallocCacheIsNotBesideAUnitForWholeCalls) {
  EXPECT_EQ(problem("base = [\"haswell-1\", \"hardware/mallacc\", \"hardware/fixed-time\"]"),
            "mallacc: not beside a unit that serves whole calls and runs none of their code");
}

TEST_F(MachineFileTest, AMallocCacheOfASupportCoreIsOfOneHeap) {
  const std::string both = "base = [\"speedmalloc-4\", \"hardware/speedmalloc\", \"hardware/mallacc\"]\n";
  EXPECT_TRUE(read(both).empty());
  EXPECT_EQ(problem(both + "[support_core]\ncontext = \"caller\"\n"),
            "mallacc: beside support cores only with support_core.context = \"parked\", as its lists are of one heap");
}

}  // namespace
}  // namespace annex::sim
