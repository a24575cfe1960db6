// What the kernel's files say about CPUs is understood, and a support core is never put where the program runs.
#include "os/cpus.h"

#include <gtest/gtest.h>

#include <vector>

namespace annex::os {
namespace {

std::vector<size_t> members(const CpuSet& set) {
  std::vector<size_t> found;
  for (size_t cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (set.has(cpu)) found.push_back(cpu);
  }
  return found;
}

TEST(Cpus, Lists) {
  EXPECT_EQ(members(parse_cpu_list("0\n")), (std::vector<size_t>{0}));
  EXPECT_EQ(members(parse_cpu_list("0-2,8,70-71\n")), (std::vector<size_t>{0, 1, 2, 8, 70, 71}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_TRUE(parse_cpu_list("\n").empty());
  EXPECT_EQ(parse_cpu_list("0-99999").count(), kMaxCpus);
  EXPECT_TRUE(parse_cpu_list("5000").empty());
}

TEST(Cpus, Sets) {
  const CpuSet a = parse_cpu_list("0-3,64");
  const CpuSet b = parse_cpu_list("2-5,64-65");
  EXPECT_EQ(members(a & b), (std::vector<size_t>{2, 3, 64}));
  EXPECT_EQ(members(a - b), (std::vector<size_t>{0, 1}));
  EXPECT_EQ((a | b).count(), 8u);
}

TEST(Cpus, Quotas) {
  EXPECT_EQ(parse_cpu_quota("max 100000\n"), SIZE_MAX);
  EXPECT_EQ(parse_cpu_quota("100000 100000\n"), 1u);
  EXPECT_EQ(parse_cpu_quota("150000 100000\n"), 1u);
  EXPECT_EQ(parse_cpu_quota("250000 100000\n"), 2u);
  EXPECT_EQ(parse_cpu_quota("20000 100000\n"), 1u);
  EXPECT_EQ(parse_cpu_quota(""), SIZE_MAX);
}

TEST(Cpus, TheSupportCoreIsElsewhere) {
  const CpuSet allowed = allowed_cpus();
  ASSERT_GE(allowed.count(), 1u);
  EXPECT_TRUE(allowed.has(current_cpu()));
  EXPECT_GE(usable_cpus(), 1u);
  for (const size_t cpu : members(allowed)) {
    const CpuSet chosen = support_cpus(allowed, cpu);
    EXPECT_FALSE(chosen.has(cpu));
    for (const size_t other : members(chosen)) EXPECT_TRUE(allowed.has(other));
  }
  CpuSet one;
  one.add(current_cpu());
  EXPECT_TRUE(core_of(current_cpu()).has(current_cpu()));
  EXPECT_TRUE(cluster_of(current_cpu()).has(current_cpu()));
  EXPECT_TRUE(support_cpus(one, current_cpu()).empty());
}

}  // namespace
}  // namespace annex::os
