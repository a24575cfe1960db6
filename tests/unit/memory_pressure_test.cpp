// Memory pressure, from files that are made here.
#include "os/memory_pressure.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace annex::os {
namespace {

std::string text_of(const std::string& total) {
  return "some avg10=1.50 avg60=0.13 avg300=0.02 total=" + total +
         "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=987\n";
}

TEST(MemoryPressure, TheTimeStalledIsTheFirstLinesTotal) {
  EXPECT_EQ(parse_stalled_us(text_of("0").c_str()), 0u);
  EXPECT_EQ(parse_stalled_us(text_of("269985").c_str()), 269985u);
  EXPECT_EQ(parse_stalled_us("some total=7\n"), 7u);
}

TEST(MemoryPressure, WhatIsNotSuchATextTellsNothing) {
  const std::string full = text_of("269985");
  for (const std::string& text :
       {std::string(), std::string("some"), std::string("some avg10=0.00\nfull total=5\n"),
        std::string("full total=5\n"), std::string("awesome total=5\n"), text_of(""), text_of("-1"), text_of("12x"),
        text_of(" 12"), text_of("99999999999999999999"), full.substr(0, full.find('\n'))}) {
    EXPECT_EQ(parse_stalled_us(text.c_str()), kNoStall) << text;
  }
}

// A folder with the files that MemoryPressure reads: cgroups, root/own/memory.pressure, root/memory.pressure, system.
class PressureFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/annex-pressure-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    mkdir((folder_ + "/root").c_str(), 0700);
    mkdir((folder_ + "/root/own").c_str(), 0700);
    cgroups_ = folder_ + "/cgroups";
    root_ = folder_ + "/root";
    system_ = folder_ + "/system";
    write(cgroups_, "1:memory:/elsewhere\n0::/own\n");
  }
  void TearDown() override {
    for (const std::string& path : {cgroups_, system_, own(), of_root()}) unlink(path.c_str());
    for (const char* directory : {"/root/own", "/root", ""}) rmdir((folder_ + directory).c_str());
  }

  std::string own() const { return root_ + "/own/memory.pressure"; }
  std::string of_root() const { return root_ + "/memory.pressure"; }
  const std::string& system() const { return system_; }
  const std::string& cgroups() const { return cgroups_; }
  MemoryPressure::Paths paths() const { return {cgroups_.c_str(), root_.c_str(), system_.c_str()}; }

  static void write(const std::string& path, const std::string& text) {
    FILE* const file = fopen(path.c_str(), "we");
    ASSERT_NE(file, nullptr) << path;
    fputs(text.c_str(), file);
    fclose(file);
  }
  static void stalled(const std::string& path, unsigned long us) { write(path, text_of(std::to_string(us))); }

 private:
  std::string folder_, cgroups_, root_, system_;
};

TEST_F(PressureFiles, IsATenthOfTheTime) {
  stalled(system(), 5'000'000);
  MemoryPressure pressure(paths());
  EXPECT_FALSE(pressure.look(1000));  // nothing to compare with
  stalled(system(), 5'099'999);
  EXPECT_FALSE(pressure.look(2000));
  stalled(system(), 5'199'999);
  EXPECT_TRUE(pressure.look(3000));
  EXPECT_FALSE(pressure.look(4000));  // it has gone by
  stalled(system(), 5'349'999);
  EXPECT_TRUE(pressure.look(5500));
  stalled(system(), 5'498'998);
  EXPECT_FALSE(pressure.look(7000));
}

TEST_F(PressureFiles, IsThatOfTheOwnCgroupOrOfTheSystem) {
  stalled(system(), 0);
  stalled(own(), 0);
  stalled(of_root(), 0);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  stalled(own(), 100'000);
  EXPECT_TRUE(pressure.look(2000));
  stalled(system(), 100'000);
  EXPECT_TRUE(pressure.look(3000));
  stalled(of_root(), 1'000'000);  // not asked where the own one is known
  EXPECT_FALSE(pressure.look(4000));
}

TEST_F(PressureFiles, IsThatOfTheRootWhereTheOwnCgroupCannotBeFound) {
  write(cgroups(), "0::/not/to/be/seen/from/here\n");
  stalled(of_root(), 0);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  stalled(of_root(), 100'000);
  EXPECT_TRUE(pressure.look(2000));
}

TEST_F(PressureFiles, TooSoonOrTooLateItSaysNothing) {
  stalled(system(), 0);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  stalled(system(), 100'000);
  EXPECT_FALSE(pressure.look(1499));
  EXPECT_TRUE(pressure.look(2000));  // since the first: the one in between was none
  stalled(system(), 100'000'000);
  EXPECT_FALSE(pressure.look(12'001));  // who knows when that was
  stalled(system(), 101'000'000);
  EXPECT_TRUE(pressure.look(22'001));
}

TEST_F(PressureFiles, ATotalThatHasBecomeLessIsAnothersAndNewToIt) {
  stalled(system(), 9'000'000);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  stalled(system(), 1'000'000);
  EXPECT_FALSE(pressure.look(2000));
  stalled(system(), 1'100'000);
  EXPECT_TRUE(pressure.look(3000));
}

TEST_F(PressureFiles, WhatIsNotThereIsNotTriedAgain) {
  MemoryPressure pressure(paths());
  pressure.look(1000);
  stalled(own(), 0);
  stalled(of_root(), 0);
  stalled(system(), 0);
  EXPECT_FALSE(pressure.look(2000));
  stalled(own(), 1'000'000);
  stalled(of_root(), 1'000'000);
  stalled(system(), 1'000'000);
  EXPECT_FALSE(pressure.look(3000));
}

TEST_F(PressureFiles, AFileThatHasGoneIsNotTriedAgain) {
  stalled(own(), 0);
  stalled(system(), 0);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  unlink(own().c_str());
  EXPECT_FALSE(pressure.look(2000));
  stalled(own(), 1'000'000);
  EXPECT_FALSE(pressure.look(3000));
  stalled(own(), 2'000'000);
  EXPECT_FALSE(pressure.look(4000));
  write(system(), "nonsense\n");
  EXPECT_FALSE(pressure.look(5000));
  stalled(system(), 1'000'000);
  EXPECT_FALSE(pressure.look(6000));
  stalled(system(), 2'000'000);
  EXPECT_FALSE(pressure.look(7000));
}

TEST_F(PressureFiles, WithoutADescriptorToSpareItTriesAgain) {
  stalled(system(), 0);
  MemoryPressure pressure(paths());
  pressure.look(1000);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool without = pressure.look(2000);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(without);
  pressure.look(3000);
  stalled(system(), 100'000);
  EXPECT_TRUE(pressure.look(4000));
}

TEST_F(PressureFiles, NoDescriptorStaysOpen) {
  stalled(own(), 0);
  stalled(system(), 0);
  const int before = dup(0);
  ASSERT_GE(before, 0);
  close(before);
  MemoryPressure pressure(paths());
  for (int i = 1; i < 5; ++i) pressure.look(static_cast<uint64_t>(i) * 1000);
  const int after = dup(0);
  close(after);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace annex::os
