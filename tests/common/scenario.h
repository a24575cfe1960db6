// Scenarios: pieces of a test that need a process of their own (they set limits, change the
// environment or abort).
//
// A scenario is a function registered under a name. run_scenario starts this same program again
// with
// --scenario=NAME, so the scenario runs with the same allocator, preloaded or linked, and collects
// what it wrote and how it ended.
#pragma once

#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

namespace annex_test {

struct Launch {
  std::string scenario;
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of this process's own
  std::string argument;                                          // what scenario_argument() returns there
  rlim_t address_space = RLIM_INFINITY;                          // RLIMIT_AS before the program starts
  rlim_t data = RLIM_INFINITY;                                   // RLIMIT_DATA before the program starts
};

struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // 0 when it exited
  std::string out;
  std::string err;
};

Outcome run_scenario(const Launch& launch);

// One line for a failure message.
std::string describe(const Outcome& outcome);

const char* scenario_argument();

// Called by main: runs the scenario that the command line names. Returns its exit code, or -1 where
// none is named.
int maybe_run_scenario(int argc, char** argv);

struct RegisterScenario {
  RegisterScenario(const char* name, int (*body)());
};

}  // namespace annex_test

// Defines a scenario; the body returns the exit code, 0 for success.
#define ANNEX_SCENARIO(name)                                                                     \
  static int annex_scenario_##name();                                                            \
  static const annex_test::RegisterScenario annex_register_##name(#name, annex_scenario_##name); \
  static int annex_scenario_##name()

// Inside a scenario: ends it with a message and exit code 1 when the condition is false. Allocates
// nothing.
#define SCENARIO_CHECK(condition)                                  \
  do {                                                             \
    if (!(condition)) {                                            \
      annex_test::scenario_failed(__FILE__, __LINE__, #condition); \
    }                                                              \
  } while (false)

namespace annex_test {
[[noreturn]] void scenario_failed(const char* file, int line, const char* condition);
}
