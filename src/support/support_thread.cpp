// A support thread: see support_thread.h.
#include "support/support_thread.h"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/fault_ahead.h"
#include "core/purge.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "os/system_call.h"
#include "support/cpu_pool.h"
#include "support/support_core.h"

namespace annex::support {

namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kSpinNs = 100 * kUs;  // how long the thread looks without a break for something to do,
constexpr uint64_t kDozeNs = 500 * kUs;  // then now and again, at most so long after it looked before,
constexpr uint64_t kIdleNs = 10 * kMs;   // until when
constexpr uint64_t kLookNs = kMs;        // how often it asks whether its CPU is its own, and gives back what is due
constexpr uint64_t kLongestNapMs = 1024;

uint64_t clock_ns(clockid_t clock) {
  struct timespec time = {};
  os::read_clock(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// How often the calling thread has been descheduled for another.
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

// True where somebody had asked.
bool SupportThread::answer_requests() {
  bool any = false;
  for_each_client([&any](Client* client) { any = answer(client) || any; });
  return any;
}

// One look at everybody; true where there was something to do.
bool SupportThread::pass() {
  bool busy = answer_requests();
  for_each_client([this, &busy](Client* client) {
    if (!wants(client)) return;
    busy = true;
    serve(client);
    answer_requests();
  });
  const bool purged = purge_after_growth();
  return fault_ahead() || purged || busy;
}

// What came in while the thread was about to leave.
void SupportThread::tidy() {
  for (int i = 0; i < 16 && pass(); ++i) {
  }
}

// --- when it does it ------------------------------------------------------------------------------------------------

// What the calling thread has spent neither running nor dozing, since some time in the past.
uint64_t SupportThread::kept_waiting_ns(uint64_t now) const {
  return now - clock_ns(CLOCK_THREAD_CPUTIME_ID) - dozed_ns_;
}

// Asked at each look; true where the thread should leave the CPU to the program: it was descheduled, and for long. Time
// in which the kernel populates memory is its own, however long that takes.
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

// Whether nobody else has wanted the CPU of late: where somebody does, it is left to them as soon as there is nothing
// to do.
bool SupportThread::alone(uint64_t now) const { return now - preempted_ns_ > kIdleNs && preemptions() == preempted_; }

// Half as long again as there has been nothing to do. False where another thread has the CPU when it is over.
bool SupportThread::doze(uint64_t now, uint64_t idle_ns) {
  state_.store(kDozing, std::memory_order_relaxed);
  const uint64_t wanted = std::min(idle_ns / 2, kDozeNs);
  struct timespec time = {0, static_cast<long>(wanted)};
  os::system_call(SYS_nanosleep, reinterpret_cast<long>(&time), 0);
  const uint64_t ns = now_ns() - now;
  dozed_ns_ += ns;
  return ns < wanted + kLookNs;
}

// Until there is nothing to do or the thread must end (true), or the CPU is needed by the program (false).
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
    purge_due();
    if (thread_.must_end()) return true;
    if (crowded(now)) return false;
  }
}

// Twice as long as the last time, since which it has not served for long.
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
    keeper_comes();
    const uint64_t since = now_ns();
    idle = serve_while_needed();
    if (now_ns() - since > 4 * kShortestNapMs * kMs) nap_ms_ = kShortestNapMs;
    keeper_leaves();
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
    // While it napped, its clients went on; from here on nobody counts them.
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
  if (cpu_pool.has_one(cpus_, cpu) && thread_.start("annex-support", body, this)) return;
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
