// How many support threads a machine gets, and for which CPUs. The machines are made up: eight CPUs that share a cache,
// and so on, as the argument of make_plan.
#include "support/placement.h"

#include <gtest/gtest.h>

namespace annex::support {
namespace {

using os::CpuSet;
using os::parse_cpu_list;

CpuSet cpus(size_t from, size_t count) {
  CpuSet set;
  for (size_t cpu = from; cpu < from + count; ++cpu) set.add(cpu);
  return set;
}

template <size_t size>
CpuSet clusters_of(size_t cpu) {
  return cpus(cpu / size * size, size);
}

// As the kernel numbers them where cores have two threads: 0-3 and their siblings 16-19.
CpuSet clusters_with_siblings(size_t cpu) { return cpus(cpu % 16 / 4 * 4, 4) | cpus(cpu % 16 / 4 * 4 + 16, 4); }

CpuSet unknown(size_t cpu) { return cpus(cpu, 1); }

bool same(const CpuSet& a, const CpuSet& b) { return (a - b).empty() && (b - a).empty(); }

TEST(Placement, OneForEachCluster) {
  const Plan plan = make_plan(cpus(0, 64), 64, 0, clusters_of<8>);
  ASSERT_EQ(plan.threads, 8u);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(same(plan.clients[i], cpus(8 * i, 8)));
  EXPECT_EQ(make_plan(cpus(0, 32), 32, 0, clusters_with_siblings).threads, 4u);
}

TEST(Placement, OneForAMachineOfOneCluster) {
  for (const size_t size : {2, 3, 4, 8}) {
    const Plan plan = make_plan(cpus(0, size), size, 0, clusters_of<8>);
    EXPECT_EQ(plan.threads, 1u);
    EXPECT_TRUE(same(plan.clients[0], cpus(0, size)));
  }
  EXPECT_EQ(make_plan(cpus(0, 64), 64, 0, unknown).threads, 1u);
}

TEST(Placement, SmallClustersHaveNoneOfTheirOwn) {
  EXPECT_EQ(make_plan(cpus(0, 16), 16, 0, clusters_of<2>).threads, 1u);
  // The affinity mask leaves two CPUs of the second cluster.
  const Plan plan = make_plan(parse_cpu_list("0-9,16-23"), 18, 0, clusters_of<8>);
  ASSERT_EQ(plan.threads, 2u);
  EXPECT_TRUE(same(plan.clients[1], cpus(16, 8)));
}

TEST(Placement, FewerThanClustersAreForAll) {
  const Plan wanted = make_plan(cpus(0, 64), 64, 1, clusters_of<8>);
  ASSERT_EQ(wanted.threads, 1u);
  EXPECT_TRUE(same(wanted.clients[0], cpus(0, 64)));
  const Plan quota = make_plan(cpus(0, 64), 10, 0, clusters_of<8>);
  ASSERT_EQ(quota.threads, 2u);
  EXPECT_TRUE(same(quota.clients[1], cpus(0, 64)));
}

TEST(Placement, MoreThanClustersTakeTurns) {
  const Plan plan = make_plan(cpus(0, 16), 16, 3, clusters_of<8>);
  ASSERT_EQ(plan.threads, 3u);
  EXPECT_TRUE(same(plan.clients[2], cpus(0, 8)));
  EXPECT_EQ(make_plan(cpus(0, 2), 2, 2, clusters_of<8>).threads, 2u);
  EXPECT_EQ(make_plan(cpus(0, 2), 2, 1000, clusters_of<8>).threads, kMostSupportThreads);
}

}  // namespace
}  // namespace annex::support
