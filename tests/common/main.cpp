// main of the test programs: checks the allocator, runs a scenario where one is named, else the
// GoogleTest tests.
//
// --expect-suites=A,B,... instead checks that the program holds exactly these suites: ctest runs
// them one by one by name, so a suite that its list lacks would never run.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include "common/flavour.h"
#include "common/scenario.h"

namespace {

int check_suites(const char* list) {
  std::set<std::string> expected;
  std::stringstream names(list);
  for (std::string name; std::getline(names, name, ',');) expected.insert(name);
  std::set<std::string> present;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) present.insert(all.GetTestSuite(i)->name());
  int missing = 0;
  for (const std::string& name : present) {
    if (expected.count(name) == 0) missing += printf("not in ctest's list: %s\n", name.c_str()) > 0;
  }
  for (const std::string& name : expected) {
    if (present.count(name) == 0) missing += printf("no such suite: %s\n", name.c_str()) > 0;
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  annex_test::require_flavour();
  const int code = annex_test::maybe_run_scenario(argc, argv);
  if (code >= 0) return code;
  static constexpr char kExpect[] = "--expect-suites=";
  if (argc == 2 && std::strncmp(argv[1], kExpect, sizeof kExpect - 1) == 0) {
    return check_suites(argv[1] + sizeof kExpect - 1);
  }
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a test that is killed for its time has said its name
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    fprintf(stderr, "no test matches the filter\n");
    return 2;
  }
  return failed;
}
