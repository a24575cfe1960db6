// Of a scenario that tests itself: it must end with exit code 0.
#pragma once

#include <gtest/gtest.h>

#include "common/scenario.h"

namespace annex_test {

inline void expect_success(const char* scenario) {
  Launch launch;
  launch.scenario = scenario;
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}

}  // namespace annex_test
