// More than one support core: each thread's blocks come from the one that serves it, and are freed by threads that
// another one serves. For the offload flavour alone.
#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
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

// The support threads that there are at this moment, by the name that they give themselves.
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

// The most that were there at once.
std::atomic<int> most{0};

// Until `wanted` support threads were there, and at least a while.
void trade_until(int wanted, Slots& slots, int id) {
  Random random(static_cast<std::uint64_t>(id));
  for (int round = 0; round < 400; ++round) {
    trade(slots, random, 4000 / kSlowdown);
    const int now = support_threads();
    DEMAND(now <= wanted);
    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    if (round >= 10 && most == wanted) return;
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
  constexpr int kThreads = 3;
  in_threads(kThreads, [&](int id) { trade_until(wanted, slots, id); });
  slots.clear();
  DEMAND(most >= 1);
  // Where they must leave their CPUs to the program again and again, they need never be there together.
  if (allowed_cpus() >= wanted + kThreads) DEMAND(most == wanted);
  DEMAND(stats_now().support_cpu_us > 0);
  return 0;
}

TEST(SupportCores, AsManyAsAreAskedFor) {
  if (allowed_cpus() < 2) GTEST_SKIP() << "no core to spare";
  for (const char* cores : {"1", "2"}) {
    const Outcome outcome = run(cores);
    EXPECT_EQ(outcome.exit_code, 0) << cores << " support cores: " << describe(outcome);
  }
}
