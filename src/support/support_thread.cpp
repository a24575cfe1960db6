// A support thread: see support_thread.h.
#include "support/support_thread.h"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "os/clock.h"
#include "os/cpus.h"
#include "os/system_call.h"
#include "pages/page_heap.h"
#include "support/cpu_pool.h"
#include "support/fault_ahead.h"
#include "support/support_core.h"

namespace annex::support {

namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kSpinNs = 100 * kUs;  // for so long without work the thread polls,
constexpr uint64_t kIdleNs = 10 * kMs;   // for so long it dozes between polls, and then it ends
constexpr uint64_t kDozeNs = 500 * kUs;  // longest time between two polls
constexpr uint64_t kLookNs = kMs;        // how often it checks whether its CPU is free, and gives back what is due
constexpr uint64_t kLongestNapMs = 1024;

uint64_t clock_ns(clockid_t clock) {
  struct timespec time = {};
  os::read_clock(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// How often the calling thread has been preempted.
long preemptions() {
  struct rusage usage = {};
  os::system_call(SYS_getrusage, RUSAGE_THREAD, reinterpret_cast<long>(&usage));
  return usage.ru_nivcsw;
}

}  // namespace

// --- what it does ---------------------------------------------------------------------------------------------------

template <class Act>
void SupportThread::for_each_client(Act act) {
  for (Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) {
    if (client->served_by.load(std::memory_order_relaxed) == this) act(client);
  }
}

// True where there was one.
bool SupportThread::answer_requests() {
  bool any = false;
  for_each_client([&any](Client* client) { any = answer(client) || any; });
  return any;
}

// Serves each client that has something to do, and does a step of all else; true where there was anything.
bool SupportThread::pass() {
  bool busy = answer_requests();
  for_each_client([this, &busy](Client* client) {
    if (!wants(client)) return;
    busy = true;
    serve(client);
    answer_requests();
  });
  const bool purged = page_heap.keeper_purges_after_growth();
  return fault_ahead() || purged || busy;
}

// Serves what came in while the thread was about to end.
void SupportThread::tidy() {
  for (int i = 0; i < 16 && pass(); ++i) {
  }
}

// --- when it does it ------------------------------------------------------------------------------------------------

// For how long the calling thread has neither run nor dozed. Only differences of it mean something.
uint64_t SupportThread::kept_waiting_ns(uint64_t now) const {
  return now - clock_ns(CLOCK_THREAD_CPUTIME_ID) - dozed_ns_;
}

// The check. True where the thread should leave the CPU to the program: more CPUs are needed than there are, or it was
// preempted and had to wait for long. (Time in which the kernel populates memory for it is time that it runs.)
bool SupportThread::crowded(uint64_t now) {
  const uint64_t waited = kept_waiting_ns(now);
  const bool late = waited > std::exchange(waited_ns_, waited) + kLookNs;
  next_look_ = now + kLookNs;
  const long preempted = preemptions();
  const bool was_preempted = preempted != std::exchange(preempted_, preempted);
  if (was_preempted) preempted_ns_ = now;
  cpu_pool.need_no_more(active_clients_);
  active_clients_ = 0;
  for_each_client([this](Client* client) {
    const uint32_t activity = client->activity.load(std::memory_order_relaxed);
    if (activity != client->activity_looked.load(std::memory_order_relaxed)) ++active_clients_;
    client->activity_looked.store(activity, std::memory_order_relaxed);
  });
  cpu_pool.need(active_clients_);
  return cpu_pool.crowded() || (was_preempted && late);
}

// Whether no other thread has wanted the CPU of late. Where one has, this thread ends as soon as there is nothing to
// do.
bool SupportThread::alone(uint64_t now) const { return now - preempted_ns_ > kIdleNs && preemptions() == preempted_; }

// Sleeps for half of the time that it has been idle, at most kDozeNs. False where another thread had the CPU after
// that.
bool SupportThread::doze(uint64_t now, uint64_t idle_ns) {
  state_.store(kDozing, std::memory_order_relaxed);
  const uint64_t wanted = std::min(idle_ns / 2, kDozeNs);
  struct timespec time = {0, static_cast<long>(wanted)};
  os::system_call(SYS_nanosleep, reinterpret_cast<long>(&time), 0);
  const uint64_t ns = now_ns() - now;
  dozed_ns_ += ns;
  return ns < wanted + kLookNs;
}

// Returns when there is nothing to do or the thread must end (true), or when the program needs the CPU (false).
bool SupportThread::serve_while_needed() {
  uint64_t last_busy = now_ns();
  next_look_ = last_busy + kLookNs;
  preempted_ = preemptions();
  waited_ns_ = kept_waiting_ns(last_busy);
  for (;;) {
    const bool busy = pass();
    const uint64_t now = now_ns();
    if (thread_.asked_to_end()) return true;
    if (busy) {
      last_busy = now;
      if (!attentive()) state_.store(kAwake, std::memory_order_relaxed);
    } else if (now - last_busy > kIdleNs || (now - last_busy > kSpinNs && !alone(now))) {
      return true;
    } else if (now - last_busy > kSpinNs) {
      if (!doze(now, now - last_busy)) return false;
    } else {
      os::pause();
    }
    if (now < next_look_) continue;
    page_heap.keeper_purges_due();
    if (thread_.must_end()) return true;
    if (crowded(now)) return false;
  }
}

// For twice as long as last time. (Where it has served for long since then, run() has reset the time.)
void SupportThread::nap() {
  nap_until_ms_.store(os::now_ms() + nap_ms_, std::memory_order_relaxed);
  nap_ms_ = std::min(2 * nap_ms_, kLongestNapMs);
  state_.store(kNapping, std::memory_order_seq_cst);
}

void SupportThread::run() {
  id_.store(os::system_call(SYS_gettid), std::memory_order_relaxed);
  dozed_ns_ = 0;
  const os::CpuSet cpu = cpu_pool.take(cpus_, waker_cpu_);
  bool idle = false;
  if (!cpu.empty()) {
    cpu_pool.need(1);
    page_heap.keeper_comes();
    const uint64_t since = now_ns();
    idle = serve_while_needed();
    if (now_ns() - since > 4 * kShortestNapMs * kMs) nap_ms_ = kShortestNapMs;
    page_heap.keeper_leaves();
    cpu_pool.need_no_more(1);
  }
  demand_.store(0, std::memory_order_relaxed);
  if (idle) {
    cpu_pool.need_no_more(std::exchange(active_clients_, 0));
    state_.store(kAsleep, std::memory_order_seq_cst);
  } else {
    nap();
  }
  tidy();
  cpu_pool.put_back(cpu);
  id_.store(0, std::memory_order_relaxed);
  ended_us_.fetch_add(clock_ns(CLOCK_THREAD_CPUTIME_ID) / kUs, std::memory_order_relaxed);
}

// --- for the program ------------------------------------------------------------------------------------------------

void SupportThread::note_demand() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  if (state == kNapping && os::now_ms() >= nap_until_ms_.load(std::memory_order_relaxed) &&
      state_.compare_exchange_strong(state, kWoken, std::memory_order_acquire)) {
    // Its clients were counted as active while it napped. From here on they are not.
    cpu_pool.need_no_more(std::exchange(active_clients_, 0));
    demand_.store(0, std::memory_order_relaxed);
    state_.store(state = kAsleep, std::memory_order_release);
  }
  if (state == kAsleep) demand_.store(demand_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void SupportThread::start() {
  uint32_t expected = kAsleep;
  if (!state_.compare_exchange_strong(expected, kAwake, std::memory_order_acquire)) return;
  if (os::HelperThread::ruled_out()) return nap();
  const uint32_t cpu = static_cast<uint32_t>(os::current_cpu());
  waker_cpu_ = cpu;
  const auto body = [](void* self) { static_cast<SupportThread*>(self)->run(); };
  if (cpu_pool.has_one(cpus_, cpu) && thread_.start("annex-support", body, this) == os::HelperThread::Start::kMade)
    return;
  demand_.store(0, std::memory_order_relaxed);
  nap();
}

uint64_t SupportThread::cpu_us() const {
  const uint64_t ended = ended_us_.load(std::memory_order_relaxed);
  const long id = id_.load(std::memory_order_relaxed);
  if (id == 0) return ended;
  // The kernel's name for the clock of a thread's CPU time (time/posix-cpu-timers: per thread, scheduled time).
  const clockid_t clock = static_cast<clockid_t>(~static_cast<unsigned>(id) << 3 | 6);
  struct timespec time = {};
  if (!os::read_clock(clock, &time)) return ended;
  return ended + static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_nsec) / 1000;
}

void SupportThread::forget_after_fork() {
  id_.store(0, std::memory_order_relaxed);
  ended_us_.store(0, std::memory_order_relaxed);
  active_clients_ = 0;
  nap_ms_ = kShortestNapMs;
  demand_.store(0, std::memory_order_relaxed);
  state_.store(kAsleep, std::memory_order_relaxed);
}

}  // namespace annex::support
