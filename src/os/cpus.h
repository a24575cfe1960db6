// The CPUs that this process may use, and how they are related, read from the kernel.
//
// For the support core's thread: no libc call that allocates or needs thread-local storage, system calls without errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

inline constexpr size_t kMaxCpus = 1024;

struct CpuSet {
  uint64_t words[kMaxCpus / 64] = {};

  bool has(size_t cpu) const { return cpu < kMaxCpus && (words[cpu / 64] >> (cpu % 64) & 1) != 0; }
  void add(size_t cpu) {
    if (cpu < kMaxCpus) words[cpu / 64] |= uint64_t{1} << (cpu % 64);
  }
  void remove(size_t cpu) {
    if (cpu < kMaxCpus) words[cpu / 64] &= ~(uint64_t{1} << (cpu % 64));
  }
  size_t count() const;
  bool empty() const { return count() == 0; }
};

// A list as the kernel writes it: "0-3,8,10-11".
CpuSet parse_cpu_list(const char* text);
// How many CPUs a cgroup's "cpu.max" grants ("150000 100000": 1; "max 100000": SIZE_MAX), at least 1.
size_t parse_cpu_quota(const char* text);

// The calling thread's affinity mask.
CpuSet allowed_cpus();
// How many CPUs' worth of time the process may use: its mask, and the quota of its cgroup.
size_t usable_cpus();
// The CPU that the caller runs on.
size_t current_cpu();
// Of `allowed`, where a support core for a program on `cpu` may be: in the same cluster of caches if there is one to
// choose, never `cpu` itself or one of its SMT siblings. Empty where there is none.
CpuSet support_cpus(const CpuSet& allowed, size_t cpu);
// Binds the calling thread.
void bind_to(const CpuSet& cpus);

}  // namespace annex::os
