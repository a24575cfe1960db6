// More than one support core: each thread's blocks come from the one that serves it, and are freed by threads that
// another one serves. For the offload flavour alone.
#include <dirent.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

std::string content_of(const std::string& path) {
  char text[256] = {};
  FILE* file = fopen(path.c_str(), "r");
  if (file == nullptr) return {};
  const std::size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  return {text, length};
}

// The support threads that have run, by the name that they give themselves when they do.
int support_threads() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  DEMAND(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    if (content_of(std::string("/proc/self/task/") + task->d_name + "/comm") == "annex-support\n") ++count;
  }
  closedir(tasks);
  return count;
}

// Until `wanted` support threads have run, and at least a while.
void trade_until(int wanted, Slots& slots, int id) {
  Random random(static_cast<std::uint64_t>(id));
  for (int round = 0; round < 400; ++round) {
    trade(slots, random, 4000 / kSlowdown);
    if (round >= 10 && support_threads() == wanted) return;
  }
}

Outcome run(const char* cores) {
  Launch launch;
  launch.scenario = "support_cores";
  launch.argument = cores;
  launch.environment = {{"ANNEX_SUPPORT_CORES", cores}};
  return run_scenario(launch);
}

}  // namespace

ANNEX_SCENARIO(support_cores) {
  const int wanted = atoi(scenario_argument());
  Slots slots;
  in_threads(3, [&](int id) { trade_until(wanted, slots, id); });
  slots.clear();
  DEMAND(support_threads() == wanted);
  DEMAND(stats_now().support_cpu_us > 0);
  return 0;
}

TEST(SupportCores, AsManyAsAreAskedFor) {
  cpu_set_t cpus;
  DEMAND(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
  if (CPU_COUNT(&cpus) < 2) GTEST_SKIP() << "no core to spare";
  for (const char* cores : {"1", "2"}) {
    const Outcome outcome = run(cores);
    EXPECT_EQ(outcome.exit_code, 0) << cores << " support cores: " << describe(outcome);
  }
}
