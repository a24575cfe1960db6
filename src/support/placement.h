// How many support threads there are, and which of them serves which client (SpeedMalloc section 6.5: a support core
// for each cluster of a large machine, since a hand-over between clusters takes longer than within one).
//
//   clusters   sets of kLeastCluster usable CPUs or more that share their last-level cache
//   threads    ANNEX_SUPPORT_CORES, else min(clusters, usable / kLeastCluster); at least 1, and at most as many as
//              there is room for or ANNEX_SUPPORT_CPU names CPUs
//
// With fewer threads than clusters, each serves clients on all CPUs. With more, a cluster's clients are given to its
// threads in turn.
//
// The plan is made once the process has shown that it allocates (kStartDemand hand-overs). At its next hand-over a
// client is given to a support thread of the cluster that its thread runs in.
//
// Synchronization: any thread may call. One makes the plan, and it is constant then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/cpu_set.h"
#include "support/client.h"
#include "support/support_thread.h"

namespace annex::support {

inline constexpr size_t kMostSupportThreads = 32;
inline constexpr size_t kLeastCluster = 4;

// On which CPUs each support thread's clients are.
struct Plan {
  uint32_t threads = 0;
  os::CpuSet clients[kMostSupportThreads];
};

// For `usable` CPUs' worth of time and `wanted` support threads (0: as the rule above says).
Plan make_plan(const os::CpuSet& allowed, size_t usable, size_t wanted, os::CpuSet (*cluster_of)(size_t cpu));

// Whether the client's support thread takes what the client sends; whether it also answers requests at once.
inline bool awake(const Client* client) {
  const SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  return thread != nullptr && thread->awake();
}
inline bool attentive(const Client* client) {
  const SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  return thread != nullptr && thread->attentive();
}

// The client's thread had to do the support thread's work.
void note_demand(Client* client);
// On a slow path of malloc, with no lock held and nothing half done: starts the client's support thread if there has
// been enough demand.
inline void start_wanted(Client* client) {
  SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  if (thread != nullptr && thread->wanted()) [[unlikely]]
    thread->start();
}

// Microseconds of CPU that the support threads have used together; 0 where there is none.
uint64_t support_cpu_us();

// In a forked child, which has no support threads.
void forget_support_threads_after_fork();

}  // namespace annex::support
