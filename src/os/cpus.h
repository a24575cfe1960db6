// The CPUs that this process may use, and how they are related, read from the kernel.
//
// Synchronization: any thread. System calls alone: nothing here allocates or sets errno.
#pragma once

#include <cstddef>

#include "os/cpu_set.h"

namespace annex::os {

// How many CPUs a cgroup's "cpu.max" grants ("150000 100000": 1; "max 100000": SIZE_MAX), at least 1.
size_t parse_cpu_quota(const char* text);

// The calling thread's affinity mask.
CpuSet allowed_cpus();
// How many CPUs' worth of time the process may use: its mask, and the quota of its cgroup.
size_t usable_cpus();
// The CPU that the caller runs on.
size_t current_cpu();
// The CPUs of its core (itself and its SMT siblings), and those that share its last-level cache: itself alone where the
// kernel doesn't say.
CpuSet core_of(size_t cpu);
CpuSet cluster_of(size_t cpu);
// Which of `allowed` may be the support core of a program that runs on `cpu`: those of its cluster, or all where its
// cluster has none; never `cpu` itself or one of its SMT siblings. Empty where there is none.
CpuSet support_cpus(const CpuSet& allowed, size_t cpu);
// Sets the calling thread's affinity mask.
void bind_to(const CpuSet& cpus);

}  // namespace annex::os
