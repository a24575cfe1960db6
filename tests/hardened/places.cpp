// Where blocks lie is by chance, and what is freed is not soon handed out again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "hardened/misuse.h"

using namespace annex_test;

TEST(Places, TheNextBlockIsSeldomDirectlyBehind) {
  for (std::size_t bytes : {8, 56, 248, 1016}) {
    constexpr int kBlocks = 4000;
    std::vector<char*> blocks(kBlocks);
    for (char*& block : blocks) block = static_cast<char*>(opaque(malloc(bytes)));
    int behind = 0;
    for (int i = 1; i < kBlocks; ++i) behind += blocks[i] - blocks[i - 1] == static_cast<std::ptrdiff_t>(bytes + 8);
    EXPECT_LT(behind, kBlocks / 8) << bytes;  // one in sixteen
    for (char* block : blocks) free(block);
  }
}

TEST(Places, AFreedBlockIsNotTheNextOne) {
  for (std::size_t bytes : {16, 200, 1000, 20000, 60000, 1000000}) {
    for (int i = 0; i < 1000; ++i) {
      void* block = opaque(malloc(bytes));
      free(block);
      void* next = opaque(malloc(bytes));
      EXPECT_NE(next, block) << bytes;
      free(next);
    }
  }
}

ANNEX_SCENARIO(tell_a_place) {
  // From libc: that it is elsewhere in each process is the system's doing.
  const auto place = reinterpret_cast<std::uintptr_t>(opaque(malloc(100))) - reinterpret_cast<std::uintptr_t>(&strlen);
  const std::string text = std::to_string(place);
  SCENARIO_CHECK(write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return 0;
}
TEST(Places, EachProcessHasItsHeapElsewhere) {
  std::set<std::string> places;
  for (int i = 0; i < 8; ++i) {
    Launch launch;
    launch.scenario = "tell_a_place";
    const Outcome outcome = run_scenario(launch);
    ASSERT_EQ(outcome.exit_code, 0) << describe(outcome);
    places.insert(outcome.out);
  }
  EXPECT_EQ(places.size(), 8u);
}
