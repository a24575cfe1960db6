// The support thread: see support_thread.h.
#include "support/support_thread.h"

#include <linux/futex.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#include "core/fault_ahead.h"
#include "os/cpus.h"
#include "os/helper_thread.h"
#include "os/message.h"
#include "os/options.h"
#include "os/system_call.h"
#include "support/support_core.h"

namespace annex::support {

namespace {

enum State : uint32_t { kNone, kAwake, kAsleep, kNapping, kNever };

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kIdleNs = 100 * kUs;
constexpr uint64_t kLookNs = kMs;  // how often the thread asks whether its CPU is its own
constexpr uint64_t kShortestNapNs = 8 * kMs;
constexpr uint64_t kLongestNapNs = 1024 * kMs;
constexpr uint32_t kStartDemand = 1024;
constexpr uint32_t kWakeDemand = 32;

constinit os::HelperThread thread;
std::atomic<uint32_t> state{kNone};
std::atomic<uint32_t> demand{0};  // times that a program thread helped itself, since the last change of state
std::atomic<long> thread_id{0};
std::atomic<uint32_t> waker_cpu{0};  // where the program ran that started or woke the thread

uint64_t now_ns() {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

void futex_wait(uint32_t expected, uint64_t ns) {
  struct timespec time = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  os::system_call(SYS_futex, reinterpret_cast<long>(&state), FUTEX_WAIT_PRIVATE, expected,
                  ns == 0 ? 0 : reinterpret_cast<long>(&time));
}

// --- where to run ---------------------------------------------------------------------------------------------------

// All CPUs that the process had when the thread was started.
constinit os::CpuSet allowed;

os::CpuSet candidates(size_t program_cpu) {
  os::CpuSet chosen;
  if (os::options.support_cpu >= 0) chosen.add(static_cast<size_t>(os::options.support_cpu));
  return chosen.empty() ? os::support_cpus(allowed, program_cpu) : chosen;
}

void bind_to_one() {
  const os::CpuSet from = candidates(waker_cpu.load(std::memory_order_relaxed));
  if (from.empty()) return;
  os::bind_to(from);  // moves the thread to one of them, where the kernel finds it best
  os::CpuSet here;
  here.add(os::current_cpu());
  os::bind_to(here);
}

// --- whether the CPU is free ----------------------------------------------------------------------------------------

class Watch {
 public:
  explicit Watch(uint64_t now) : next_look_(now + kLookNs), preempted_(preemptions()) {}

  // Asked after every pass; true where the thread should leave the CPU to the program.
  bool crowded(uint64_t now) {
    if (now < next_look_) return false;
    const bool late = now > next_look_ + kLookNs;  // did not run for a while
    next_look_ = now + kLookNs;
    const long preempted = preemptions();
    const bool was_preempted = preempted != preempted_;
    preempted_ = preempted;
    return active_clients() >= cpus_ || (was_preempted && late);
  }

  static void count_cpus() { cpus_ = static_cast<uint32_t>(os::usable_cpus()); }
  static uint32_t cpus() { return cpus_; }

 private:
  static long preemptions() {
    struct rusage usage = {};
    os::system_call(SYS_getrusage, RUSAGE_THREAD, reinterpret_cast<long>(&usage));
    return usage.ru_nivcsw;
  }

  // How many clients have used stash or ring since they were last counted.
  static uint32_t active_clients() {
    uint32_t count = 0;
    for (Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) {
      const uint32_t activity = client->activity.load(std::memory_order_relaxed);
      if (activity != client->activity_looked) ++count;
      client->activity_looked = activity;
    }
    return count;
  }

  static constinit uint32_t cpus_;
  uint64_t next_look_;
  long preempted_;
};
constinit uint32_t Watch::cpus_ = 0;

// --- the thread -----------------------------------------------------------------------------------------------------

// One look at everybody; true where there was something to do.
bool pass() {
  bool busy = answer_requests();
  for (Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) {
    if (!wants(client)) continue;
    busy = true;
    serve(client);
    answer_requests();
  }
  return fault_ahead() || busy;
}

// Until there is nothing to do (true) or the CPU is needed by the program (false).
bool serve_while_needed() {
  uint64_t last_busy = now_ns();
  Watch watch(last_busy);
  for (;;) {
    const bool busy = pass();
    const uint64_t now = now_ns();
    if (busy) {
      last_busy = now;
    } else if (now - last_busy > kIdleNs) {
      return true;
    } else {
      os::pause();
    }
    if (watch.crowded(now)) return false;
  }
}

// What came in while the thread was about to leave.
void tidy() {
  for (int i = 0; i < 16 && pass(); ++i) {
  }
}

void run() {
  thread_id.store(os::system_call(SYS_gettid), std::memory_order_relaxed);
  uint64_t nap = kShortestNapNs;
  for (;;) {
    bind_to_one();
    const uint64_t since = now_ns();
    const bool idle = serve_while_needed();
    if (now_ns() - since > 4 * kShortestNapNs) nap = kShortestNapNs;
    demand.store(0, std::memory_order_relaxed);
    state.store(idle ? kAsleep : kNapping, std::memory_order_seq_cst);
    tidy();
    os::bind_to(allowed);
    if (!idle) {
      futex_wait(kNapping, nap);
      nap = std::min(2 * nap, kLongestNapNs);
      demand.store(0, std::memory_order_relaxed);
      state.store(kAsleep, std::memory_order_release);
    }
    while (state.load(std::memory_order_acquire) == kAsleep) futex_wait(kAsleep, 0);
  }
}

[[gnu::cold, gnu::noinline]] void start() {
  uint32_t expected = kNone;
  if (!state.compare_exchange_strong(expected, kNever, std::memory_order_relaxed)) return;
  if (!os::options.background) return;
  allowed = os::allowed_cpus();
  Watch::count_cpus();
  if (os::options.support_cpu >= 0 && !allowed.has(static_cast<size_t>(os::options.support_cpu))) {
    os::warn("ANNEX_SUPPORT_CPU names a CPU that this process may not use; choosing one");
    os::options.support_cpu = -1;
  }
  if (Watch::cpus() < 2 || candidates(os::current_cpu()).empty()) return;
  waker_cpu.store(static_cast<uint32_t>(os::current_cpu()), std::memory_order_relaxed);
  state.store(kAwake, std::memory_order_release);
  if (!thread.start(run)) state.store(kNever, std::memory_order_release);
}

}  // namespace

bool awake() { return state.load(std::memory_order_relaxed) == kAwake; }

void note_demand() {
  const uint32_t now = state.load(std::memory_order_relaxed);
  if (now != kNone && now != kAsleep) return;
  const uint32_t times = demand.load(std::memory_order_relaxed) + 1;
  demand.store(times, std::memory_order_relaxed);
  if (now == kNone) {
    if (times >= kStartDemand || os::options.protocol != os::Protocol::kStash) start();
    return;
  }
  if (times < kWakeDemand) return;
  waker_cpu.store(static_cast<uint32_t>(os::current_cpu()), std::memory_order_relaxed);
  uint32_t expected = kAsleep;
  if (!state.compare_exchange_strong(expected, kAwake, std::memory_order_release)) return;
  os::system_call(SYS_futex, reinterpret_cast<long>(&state), FUTEX_WAKE_PRIVATE, 1);
}

uint64_t support_cpu_us() {
  const long id = thread_id.load(std::memory_order_relaxed);
  if (id == 0) return 0;
  // The kernel's name for the clock of a thread's CPU time (time/posix-cpu-timers: per thread, scheduled time).
  const clockid_t clock = static_cast<clockid_t>(~static_cast<unsigned>(id) << 3 | 6);
  struct timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_nsec) / 1000;
}

void forget_support_thread_after_fork() {
  thread.forget_after_fork();
  thread_id.store(0, std::memory_order_relaxed);
  state.store(kNone, std::memory_order_relaxed);
  demand.store(0, std::memory_order_relaxed);
}

}  // namespace annex::support
