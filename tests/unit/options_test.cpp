// The environment: each kind of value, and what happens to wrong ones. Each case runs in a process of its own.
#include "os/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace annex::os {
namespace {

// The options as a process with this environment sees them, and what it prints on standard error.
void expect(const char* name, const char* value, auto check, const std::string& output) {
  EXPECT_EXIT(
      {
        setenv(name, value, 1);
        options = Options{};
        parse_environment();
        _exit(check(options) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), output)
      << name << "=" << value;
}

TEST(Options, GoodValues) {
  expect(
      "ANNEX_PURGE_DELAY", "250", [](auto& o) { return o.purge_delay_ms == 250; }, "^$");
  expect(
      "ANNEX_PURGE_DELAY", "-1", [](auto& o) { return o.purge_delay_ms == -1; }, "^$");
  expect(
      "ANNEX_MAX_HEAP", "64M", [](auto& o) { return o.max_heap_bytes == size_t{64} << 20; }, "^$");
  expect(
      "ANNEX_MAX_HEAP", "2GiB", [](auto& o) { return o.max_heap_bytes == size_t{2} << 30; }, "^$");
  expect(
      "ANNEX_RESERVE", "123456", [](auto& o) { return o.reserve_bytes == 123456; }, "^$");
  expect(
      "ANNEX_HUGE_PAGES", "never", [](auto& o) { return o.huge_pages == HugePages::kNever; }, "^$");
  expect(
      "ANNEX_STATS", "json", [](auto& o) { return o.stats == StatsFormat::kJson; }, "^$");
  expect(
      "ANNEX_BACKGROUND", "0", [](auto& o) { return o.background == Background::kNone; }, "^$");
  expect(
      "ANNEX_BACKGROUND", "1", [](auto& o) { return o.background == Background::kAll; }, "^$");
  expect(
      "ANNEX_SUPPORT_CORES", "3", [](auto& o) { return o.support_cores == 3; }, "^$");
  expect(
      "ANNEX_SUPPORT_CPU", "2,5-7", [](auto& o) { return o.support_cpus.count() == 4 && o.support_cpus.has(6); }, "^$");
  expect(
      "ANNEX_SAMPLE", "100", [](auto& o) { return o.sample == 100; }, "^$");
  expect(
      "ANNEX_BACKTRACE", "1", [](auto& o) { return o.backtrace; }, "^$");
  expect(
      "ANNEX_VERBOSE", "", [](auto& o) { return !o.verbose; }, "^$");
}

// What the table tells of defaults (documents, warnings) is what a process without variables gets.
TEST(Options, DefaultsAreThoseOfTheTable) {
  const Options standard;
#define ANNEX_OPTION(identifier, name, text, values, description) setenv(name, text, 1);
#include "os/options.def"
#undef ANNEX_OPTION
  // Others than the defaults before the table's are read. An empty one means that there is nothing to read.
  options.purge_delay_ms = 1;
  options.reserve_bytes = 1;
  options.max_heap_bytes = 1;
  options.huge_pages = HugePages::kNever;
  options.stats = StatsFormat::kJson;
  options.protocol = Protocol::kQueue;
  options.support_cores = 1;
  options.background = Background::kAll;
  options.verbose = !standard.verbose;
  parse_environment();
  EXPECT_EQ(options.purge_delay_ms, standard.purge_delay_ms);
  EXPECT_EQ(options.reserve_bytes, standard.reserve_bytes);
  EXPECT_EQ(options.max_heap_bytes, standard.max_heap_bytes);
  EXPECT_EQ(options.huge_pages, standard.huge_pages);
  EXPECT_EQ(options.stats, standard.stats);
  EXPECT_EQ(options.protocol, standard.protocol);
  EXPECT_EQ(options.support_cores, standard.support_cores);
  EXPECT_EQ(options.background, standard.background);
  EXPECT_EQ(options.verbose, standard.verbose);
  EXPECT_TRUE(options.support_cpus.empty());
  EXPECT_STREQ(options.stats_file, standard.stats_file);
  options = standard;
#define ANNEX_OPTION(identifier, name, text, values, description) unsetenv(name);
#include "os/options.def"
#undef ANNEX_OPTION
}

TEST(Options, WrongValuesWarnOnceAndChangeNothing) {
  const auto untouched = [](auto& o) {
    const Options standard;
    return o.purge_delay_ms == standard.purge_delay_ms && o.max_heap_bytes == standard.max_heap_bytes &&
           o.huge_pages == standard.huge_pages && o.background == standard.background &&
           o.support_cores == standard.support_cores && o.support_cpus.empty();
  };
  expect("ANNEX_PURGE_DELAY", "soon", untouched,
         "^annex: ANNEX_PURGE_DELAY=soon is not understood .milliseconds; 0 at once, -1 never.; using 1000\n$");
  expect("ANNEX_PURGE_DELAY", "-2", untouched, "^annex: ANNEX_PURGE_DELAY=-2 .*\n$");
  expect("ANNEX_MAX_HEAP", "99999999999999999999", untouched, "^annex: .*\n$");
  expect("ANNEX_MAX_HEAP", "20000000T", untouched, "^annex: .*\n$");
  expect("ANNEX_MAX_HEAP", "1Mx", untouched, "^annex: .*\n$");
  expect("ANNEX_HUGE_PAGES", "Never", untouched, "^annex: .*\n$");
  expect("ANNEX_BACKGROUND", "yes", untouched, "^annex: .*\n$");
  expect("ANNEX_SUPPORT_CORES", "-1", untouched, "^annex: .*\n$");
  for (const char* list : {"-1", "two", "3;4", "7-5", "99999"}) {
    expect("ANNEX_SUPPORT_CPU", list, untouched, "^annex: .*\n$");
  }
}

TEST(Options, UnknownNamesWarn) {
  const auto untouched = [](auto& o) { return o.purge_delay_ms == Options().purge_delay_ms; };
  const auto meant = [](const char* name) {
    return std::string("^annex: ANNEX_.* is not a setting: did you mean ") + name +
           "\\? .annex help env lists them.\n$";
  };
  expect("ANNEX_PURGE_DELY", "1", untouched, meant("ANNEX_PURGE_DELAY"));
  expect("ANNEX_MAXHEAP", "1", untouched, meant("ANNEX_MAX_HEAP"));
  expect("ANNEX_STAT", "text", untouched, meant("ANNEX_STATS"));
  expect("ANNEX_SUPPORT_CPUS", "1", untouched, meant("ANNEX_SUPPORT_CPU"));
  expect("ANNEX_PURGE", "1", untouched, meant("ANNEX_PURGE_DELAY"));
  expect("ANNEX_COOKING", "1", untouched, "^annex: ANNEX_COOKING is not a setting .annex help env lists them.\n$");
  expect("ANNEX_REQUIRE_ALL", "1", untouched, "^$");  // the tests' own
}

}  // namespace
}  // namespace annex::os
