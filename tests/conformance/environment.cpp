// Wrong values in the environment: one warning line each, then the default.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "api.h"

using namespace annex_test;

ANNEX_SCENARIO(allocates_a_lot) {
  void* blocks[64];
  for (void*& block : blocks) {
    block = opaque(malloc(4 * kMiB));
    SCENARIO_CHECK(block != nullptr);
  }
  for (void* block : blocks) free(block);
  return 0;
}

namespace {

Outcome run_with(const std::string& name, const std::string& value) {
  Launch launch;
  launch.scenario = "allocates_a_lot";
  launch.environment = {{name, value}};
  return run_scenario(launch);
}

void expect_one_warning(const std::string& name, const std::string& value) {
  const Outcome outcome = run_with(name, value);
  const std::string what = name + "=" + value + ": " + describe(outcome);
  EXPECT_EQ(outcome.exit_code, 0) << what;
  EXPECT_EQ(outcome.err.compare(0, 7, "annex: "), 0) << what;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << what;
  EXPECT_NE(outcome.err.find(name), std::string::npos) << what;
}

}  // namespace

TEST(Environment, WrongBytes) {
  SKIP_ON_GLIBC("reads no ANNEX_ variables");
  for (const char* name : {"ANNEX_MAX_HEAP", "ANNEX_RESERVE"}) {
    for (const char* value :
         {"banana", "-5", "12X", "M", "1.5G", "64MM", "0x", "99999999999999999999999", "99999999999G", "64M "}) {
      expect_one_warning(name, value);
    }
  }
}

TEST(Environment, WrongDelay) {
  SKIP_ON_GLIBC("reads no ANNEX_ variables");
  for (const char* value : {"soon", "10q", "-", "1e3", "99999999999999999999999"}) {
    expect_one_warning("ANNEX_PURGE_DELAY", value);
  }
}

TEST(Environment, WrongWords) {
  SKIP_ON_GLIBC("reads no ANNEX_ variables");
  expect_one_warning("ANNEX_HUGE_PAGES", "sometimes");
  expect_one_warning("ANNEX_BACKGROUND", "maybe");
  expect_one_warning("ANNEX_STATS", "xml");
  expect_one_warning("ANNEX_VERBOSE", "loud");
}

TEST(Environment, VerboseSaysHowTheLibraryIsSetUp) {
  SKIP_ON_GLIBC("reads no ANNEX_ variables");
  const Outcome outcome = run_with("ANNEX_VERBOSE", "1");
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_EQ(outcome.err.compare(0, 7, "annex: "), 0) << describe(outcome);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << describe(outcome);
  EXPECT_NE(outcome.err.find("arena of"), std::string::npos) << describe(outcome);
}

TEST(Environment, RightValuesWarnOfNothing) {
  const std::pair<const char*, const char*> kRight[] = {
      {"ANNEX_MAX_HEAP", "1G"},      {"ANNEX_MAX_HEAP", "2048M"},    {"ANNEX_MAX_HEAP", "4000000K"},
      {"ANNEX_MAX_HEAP", "1T"},      {"ANNEX_MAX_HEAP", "0"},        {"ANNEX_MAX_HEAP", "3000000000"},
      {"ANNEX_RESERVE", "64G"},      {"ANNEX_RESERVE", "100000M"},   {"ANNEX_PURGE_DELAY", "0"},
      {"ANNEX_PURGE_DELAY", "200"},  {"ANNEX_PURGE_DELAY", "-1"},    {"ANNEX_HUGE_PAGES", "auto"},
      {"ANNEX_HUGE_PAGES", "never"}, {"ANNEX_HUGE_PAGES", "always"}, {"ANNEX_BACKGROUND", "0"},
      {"ANNEX_BACKGROUND", "1"},     {"ANNEX_STATS", "off"},         {"ANNEX_VERBOSE", "0"},
  };
  for (const auto& [name, value] : kRight) {
    const Outcome outcome = run_with(name, value);
    EXPECT_EQ(outcome.exit_code, 0) << name << '=' << value << describe(outcome);
    EXPECT_EQ(outcome.err, "") << name << '=' << value;
  }
}

TEST(Environment, ASmallReserveIsNoLimit) {
  // The arena chains further reservations: more must fit than was reserved at first.
  const Outcome outcome = run_with("ANNEX_RESERVE", "64M");
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_EQ(outcome.err, "");
}

TEST(Environment, StatisticsAtExit) {
  SKIP_ON_GLIBC("reads no ANNEX_ variables");
  Outcome outcome = run_with("ANNEX_STATS", "json");
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_EQ(outcome.err.compare(0, 1, "{"), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("\"peak_in_use\":"), std::string::npos) << outcome.err;
  outcome = run_with("ANNEX_STATS", "text");
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_GT(outcome.err.size(), 100u) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}
