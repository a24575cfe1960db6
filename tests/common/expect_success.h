// Of a scenario that tests itself: it must end with exit code 0.
#pragma once

#include <gtest/gtest.h>

#include "common/scenario.h"

namespace annex_test {

inline Outcome expect_success(const Launch& launch) {
  Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  return outcome;
}

inline Outcome expect_success(const char* scenario) {
  Launch launch;
  launch.scenario = scenario;
  return expect_success(launch);
}

}  // namespace annex_test
