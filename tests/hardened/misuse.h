// What the tests of the hardened flavour share: scenarios that one wrong call or access must end, at once or by the
// time that the program has freed and allocated for a while.
#pragma once

#include <csignal>
#include <cstring>

#include "conformance/invalid_free.h"

namespace annex_test {

// Frees and allocates blocks of the size until all that waits has been let go, and all that is free was handed out.
inline void go_on(std::size_t bytes) {
  static void* blocks[1000];
  for (int round = 0; round < 4; ++round) {
    for (void*& block : blocks) block = opaque(malloc(bytes));
    for (void* block : blocks) free(block);
  }
}

// The scenario comes as far as the wrong call or access, and ends by the signal.
inline Outcome expect_started(const std::string& scenario, const std::string& argument) {
  Launch launch;
  launch.scenario = scenario;
  launch.argument = argument;
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.out, "reached\n") << argument << ": " << describe(outcome);
  return outcome;
}
inline Outcome expect_end(const std::string& scenario, int signal, const std::string& argument) {
  const Outcome outcome = expect_started(scenario, argument);
  EXPECT_EQ(outcome.signal, signal) << argument << ": " << describe(outcome);
  return outcome;
}

// Whether blocks have memory tags: then the hardware ends what writes to a freed block before anyone looks.
inline bool has_tags() {
  void* block = opaque(malloc(1));
  const bool tagged = reinterpret_cast<std::uintptr_t>(block) >> 56 != 0;
  free(block);
  return tagged;
}

// It ends with one line of Annex's that begins so; of the wrong accesses, where there are tags, by a fault.
inline void expect_found(const std::string& scenario, const std::string& line, const std::string& argument = "") {
  Outcome outcome = expect_started(scenario, argument);
  if (has_tags() && outcome.signal == SIGSEGV) return;
  EXPECT_EQ(outcome.signal, SIGABRT) << argument << ": " << describe(outcome);
  EXPECT_EQ(outcome.err.rfind("annex: " + line, 0), 0u) << argument << ": " << describe(outcome);
}
inline void expect_found_for(std::initializer_list<std::size_t> sizes, const std::string& scenario,
                             const std::string& line) {
  for (const std::size_t bytes : sizes) expect_found(scenario, line, std::to_string(bytes));
}

// It ends by a fault of the hardware.
inline void expect_fault(const std::string& scenario, const std::string& argument = "") {
  expect_end(scenario, SIGSEGV, argument);
}

#define SKIP_WITH_TAGS() \
  if (annex_test::has_tags()) GTEST_SKIP() << "the hardware ends a program that touches a freed block"

inline constexpr char kTwice[] = "a block freed twice";
inline constexpr char kBehind[] = "a block written to behind its end:";
inline constexpr char kAfter[] = "a block written to after it was freed:";

}  // namespace annex_test
