// How many support threads there are, and which client is whose (SpeedMalloc section 6.5: a support core for each
// cluster of a large machine, since a hand-over between clusters takes longer than within one).
//
//   clusters   sets of kLeastCluster usable CPUs or more that share their last-level cache
//   threads    ANNEX_SUPPORT_CORES, else min(clusters, usable / kLeastCluster); at least 1, and at most as many as
//              there is room for or ANNEX_SUPPORT_CPU names CPUs
//
// Where there are fewer threads than clusters, each is for all CPUs; where more, clusters have several in turns.
//
// The plan is made once the process has shown that it allocates (kStartDemand hand-overs). A client is given to a
// support thread of the cluster that its thread runs in, at its first hand-over from then on.
//
// Synchronization: any thread may call. The plan is made by one, and read after.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/cpu_set.h"
#include "support/client.h"
#include "support/support_thread.h"

namespace annex::support {

inline constexpr size_t kMostSupportThreads = 32;
inline constexpr size_t kLeastCluster = 4;

// For whom each support thread is.
struct Plan {
  uint32_t threads = 0;
  os::CpuSet clients[kMostSupportThreads];
};

// `usable` CPUs' worth of time, `wanted` support threads (0: as many as is right).
Plan make_plan(const os::CpuSet& allowed, size_t usable, size_t wanted, os::CpuSet (*cluster_of)(size_t cpu));

// Whether blocks that the client sends will be taken up; whether requests will be, at once.
inline bool awake(const Client* client) {
  const SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  return thread != nullptr && thread->awake();
}
inline bool attentive(const Client* client) {
  const SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  return thread != nullptr && thread->attentive();
}

// The client's thread had to help itself.
void note_demand(Client* client);
// On a slow path of malloc, with no lock held and nothing half done: makes the client's support thread if it has been
// called for often enough.
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
