// Which support thread serves which client: see placement.h.
#include "support/placement.h"

#include <algorithm>
#include <atomic>

#include "os/cpus.h"
#include "os/forking.h"
#include "os/message.h"
#include "os/options.h"
#include "support/cpu_pool.h"
#include "support/support_core.h"

namespace annex::support {

namespace {

constexpr uint32_t kStartDemand = 256;

enum Stage : uint32_t { kUnplanned, kPlanning, kPlanned };

std::atomic<uint32_t> stage{kUnplanned};
std::atomic<uint32_t> demand{0};  // hand-overs without a support thread, while there was no plan
std::atomic<uint32_t> turn{0};    // among the support threads of a cluster
constinit Plan plan;
constinit SupportThread threads[kMostSupportThreads];

// The user's CPUs; all where none are named.
os::CpuSet cpus_for_support() {
  os::CpuSet& named = os::options.support_cpus;
  if (!(named - cpu_pool.allowed()).empty()) {
    os::warn("ANNEX_SUPPORT_CPU names CPUs that this process may not use; doing without those");
    named = named & cpu_pool.allowed();
  }
  return named.empty() ? cpu_pool.allowed() : named;
}

void set_up_threads() {
  cpu_pool.fill();
  const os::CpuSet cpus = cpus_for_support();
  const uint32_t program_cpu = static_cast<uint32_t>(os::current_cpu());
  if (os::options.background == os::Background::kNone || cpu_pool.usable() < 2 ||
      !cpu_pool.has_one(cpus, program_cpu)) {
    plan.threads = 1;
    threads[0].rule_out();
    return;
  }
  plan = make_plan(cpu_pool.allowed(), cpu_pool.usable(), os::options.support_cores, os::cluster_of);
  plan.threads = std::min(plan.threads, static_cast<uint32_t>(cpus.count()));
  for (uint32_t i = 0; i < plan.threads; ++i) {
    const os::CpuSet near = cpus & plan.clients[i];
    threads[i].set_up(near.empty() ? cpus : near);
  }
}

// True where there is a plan.
bool planned() {
  if (os::HelperThread::ruled_out()) return false;
  uint32_t now = stage.load(std::memory_order_acquire);
  if (now == kUnplanned) {
    const uint32_t times = demand.load(std::memory_order_relaxed) + 1;
    demand.store(times, std::memory_order_relaxed);
    if (times < kStartDemand && os::options.protocol == os::Protocol::kStash) return false;
    if (!stage.compare_exchange_strong(now, kPlanning, std::memory_order_acquire)) return false;
    set_up_threads();
    now = kPlanned;
    stage.store(now, std::memory_order_release);
  }
  return now == kPlanned;
}

// The next in turn of those that serve the CPU; of all where none does.
SupportThread* thread_for(size_t cpu) {
  SupportThread* found[kMostSupportThreads];
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan.threads; ++i) {
    if (plan.clients[i].has(cpu)) found[count++] = &threads[i];
  }
  const uint32_t next = turn.fetch_add(1, std::memory_order_relaxed);
  return count == 0 ? &threads[next % plan.threads] : found[next % count];
}

}  // namespace

Plan make_plan(const os::CpuSet& allowed, size_t usable, size_t wanted, os::CpuSet (*cluster_of)(size_t cpu)) {
  Plan made;
  uint32_t clusters = 0;
  os::CpuSet left = allowed;
  for (size_t cpu = 0; cpu < os::kMaxCpus && clusters < kMostSupportThreads; ++cpu) {
    if (!left.has(cpu)) continue;
    const os::CpuSet cluster = left & cluster_of(cpu);
    left = left - cluster;
    if (cluster.count() >= kLeastCluster) made.clients[clusters++] = cluster;
  }
  const size_t most = wanted != 0 ? wanted : std::min<size_t>(clusters, usable / kLeastCluster);
  made.threads = static_cast<uint32_t>(std::clamp<size_t>(most, 1, kMostSupportThreads));
  if (made.threads < clusters || clusters == 0) {
    made.clients[0] = allowed;
    clusters = 1;
  }
  for (uint32_t i = clusters; i < made.threads; ++i) made.clients[i] = made.clients[i % clusters];
  return made;
}

void note_demand(Client* client) {
  if (os::this_thread_forks()) return;  // it makes no thread
  SupportThread* thread = client->served_by.load(std::memory_order_relaxed);
  if (thread == nullptr) {
    if (!planned()) return;
    thread = thread_for(os::current_cpu());
    client->served_by.store(thread, std::memory_order_relaxed);
  }
  thread->note_demand();
}

uint64_t support_cpu_us() {
  uint64_t sum = 0;
  for (const SupportThread& thread : threads) sum += thread.cpu_us();
  return sum;
}

void forget_support_threads_after_fork() {
  for (SupportThread& thread : threads) thread.forget_after_fork();
  for (Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) {
    client->served_by.store(nullptr, std::memory_order_relaxed);
  }
  cpu_pool.forget_after_fork();
  demand.store(0, std::memory_order_relaxed);
  stage.store(kUnplanned, std::memory_order_relaxed);
}

}  // namespace annex::support
