// CPUs: see cpus.h.
#include "os/cpus.h"

#include <algorithm>

#include "os/message.h"
#include "os/own_cgroup.h"
#include "os/small_file.h"
#include "os/system_call.h"
#include "os/text.h"

namespace annex::os {

namespace {

// The CPUs listed in a file of /sys/devices/system/cpu/cpuN/.
CpuSet listed_for(size_t cpu, const char* file) {
  char path[128];
  Text text(path, sizeof path - 1);
  text << "/sys/devices/system/cpu/cpu" << static_cast<uint64_t>(cpu) << "/" << file;
  path[text.stored()] = '\0';
  char content[512];
  return parse_cpu_list(read_file(path, content));
}

// The lower one of two quotas: of the process's own cgroup (version 2), and of the root of what the process can see.
size_t quota_of_cgroup() {
  char name[kLongestCgroupPath];
  char content[64];
  const size_t quota = parse_cpu_quota(read_file(path_in_own_cgroup("cpu.max", name), content));
  return std::min(quota, parse_cpu_quota(read_file("/sys/fs/cgroup/cpu.max", content)));
}

}  // namespace

size_t parse_cpu_quota(const char* text) {
  if (*text < '0' || *text > '9') return SIZE_MAX;
  const size_t quota = parse_number(&text);
  if (*text == ' ') ++text;
  const size_t period = parse_number(&text);
  return period == 0 ? SIZE_MAX : std::max<size_t>(quota / period, 1);
}

CpuSet allowed_cpus() {
  CpuSet set;
  if (system_call(SYS_sched_getaffinity, 0, sizeof set.words, reinterpret_cast<long>(set.words)) <= 0) set.add(0);
  return set;
}

size_t usable_cpus() { return std::min(allowed_cpus().count(), quota_of_cgroup()); }

size_t current_cpu() {
  unsigned cpu = 0;
  system_call(SYS_getcpu, reinterpret_cast<long>(&cpu));
  return cpu;
}

CpuSet core_of(size_t cpu) {
  CpuSet core = listed_for(cpu, "topology/thread_siblings_list");
  core.add(cpu);
  return core;
}

CpuSet cluster_of(size_t cpu) {
  CpuSet cluster = listed_for(cpu, "cache/index3/shared_cpu_list");
  cluster.add(cpu);
  return cluster;
}

CpuSet support_cpus(const CpuSet& allowed, size_t cpu) {
  const CpuSet candidates = allowed - core_of(cpu);
  const CpuSet near = candidates & cluster_of(cpu);
  return near.empty() ? candidates : near;
}

void bind_to(const CpuSet& cpus) {
  system_call(SYS_sched_setaffinity, 0, sizeof cpus.words, reinterpret_cast<long>(cpus.words));
}

}  // namespace annex::os
