// What the tests of invalid frees share. Each scenario is a process of its own, which one wrong call must end: one line
// on stderr, then abort.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "api.h"

namespace annex_test {

// Shows that the scenario came as far as the invalid call, and was not stopped by anything before it. Allocates
// nothing.
inline void reached() { SCENARIO_CHECK(write(STDOUT_FILENO, "reached\n", 8) == 8); }
inline int survived() { return write(STDOUT_FILENO, "survived\n", 9) == 9 ? 0 : 1; }

inline void expect_abort(const std::string& scenario, const std::string& argument = "") {
  SKIP_ON_GLIBC("has other words for it, and sees other cases");
  Launch launch;
  launch.scenario = scenario;
  launch.argument = argument;
  const Outcome outcome = run_scenario(launch);
  const std::string which = argument.empty() ? "" : "with " + argument + ": ";
  EXPECT_EQ(outcome.out, "reached\n") << which << describe(outcome);
  EXPECT_EQ(outcome.signal, SIGABRT) << which << describe(outcome);
  EXPECT_EQ(outcome.err.compare(0, 7, "annex: "), 0) << which << describe(outcome);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << which << describe(outcome);
  EXPECT_TRUE(!outcome.err.empty() && outcome.err.back() == '\n') << which << describe(outcome);
}

// The same scenario, in a process for each of the sizes; it asks for argument_bytes().
inline void expect_abort_for(std::initializer_list<std::size_t> sizes, const std::string& scenario) {
  for (const std::size_t bytes : sizes) expect_abort(scenario, std::to_string(bytes));
}
inline std::size_t argument_bytes() { return strtoull(scenario_argument(), nullptr, 10); }

// Does it in another thread, which has ended when this returns. libc allocates for a new thread (its dtv, some 350
// bytes): no scenario's blocks are of that size.
inline void in_a_thread(void* (*act)(void*), void* argument) {
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(&thread, nullptr, act, argument) == 0);
  SCENARIO_CHECK(pthread_join(thread, nullptr) == 0);
}
inline void free_in_a_thread(void* block) {
  in_a_thread(
      [](void* argument) -> void* {
        free(argument);
        return nullptr;
      },
      opaque(block));
}

}  // namespace annex_test

#define INVALID_SCENARIO(name, prepare, call) \
  ANNEX_SCENARIO(name) {                      \
    prepare;                                  \
    reached();                                \
    call;                                     \
    return survived();                        \
  }
