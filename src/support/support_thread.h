// A support thread: runs the support core's side (support_core.h) for some of the clients, on a CPU that the program
// does not use. How many there are, and which client is whose: placement.h.
//
//   asleep ----> awake          program threads have done its work kWakeDemand times: the thread is made
//   awake -----> dozing         nothing to do for kSpinNs: it sleeps and looks now and then, and need not be woken
//   dozing ----> awake          something to do
//   both ------> asleep         the thread ends: there was nothing to do for kIdleNs, or another thread has wanted the
//                               CPU of late, or it must end (os/helper_thread.h)
//   both ------> napping        the thread ends, since the CPU is not free: it was kept waiting for it, or there is
//                               none for it, or there are fewer CPUs than support threads and program threads that
//                               allocate. For 8 ms, twice as long each time, up to a second, no other is made
//   asleep ----> napping        the thread could not be made
//   napping ---> asleep         the time is over, and a program thread has had to do its work (woken, meanwhile)
//   never                       there is no CPU for it, or ANNEX_BACKGROUND=0
//
// While it is neither awake nor dozing there is no thread, program threads do its work, and make no system call for it
// but those that make the thread. While it dozes, they serve their requests themselves, too. The thread is bound to one
// CPU (cpu_pool.h).
//
// Synchronization: any thread may call; the state is one atomic word. The thread's own data passes to the next thread,
// which is made when the one before has ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/cpu_set.h"
#include "os/helper_thread.h"

namespace annex::support {

class SupportThread {
 public:
  // Before it has clients: where it may run.
  void set_up(const os::CpuSet& cpus) { cpus_ = cpus; }
  // The same where there is no CPU for it.
  void rule_out() { state_.store(kNever, std::memory_order_relaxed); }

  // Whether it takes what its clients send; whether it also answers requests at once.
  bool awake() const { return attentive() || state_.load(std::memory_order_relaxed) == kDozing; }
  bool attentive() const { return state_.load(std::memory_order_relaxed) == kAwake; }

  // A program thread had to do its work.
  void note_demand();
  // Whether that has been so often that a thread should be made; make it. See HelperThread::start for who may call.
  bool wanted() const {
    return demand_.load(std::memory_order_relaxed) >= kWakeDemand && state_.load(std::memory_order_relaxed) == kAsleep;
  }
  void start();

  // Microseconds of CPU that the thread, and those before it, have used.
  uint64_t cpu_us() const;

  // In a forked child, which has no such thread.
  void forget_after_fork();

 private:
  enum State : uint32_t { kAsleep, kAwake, kDozing, kNapping, kWoken, kNever };
  static constexpr uint32_t kWakeDemand = 32;
  static constexpr uint64_t kShortestNapMs = 8;

  template <class Act>
  void for_each_client(Act act);
  bool answer_requests();
  bool pass();
  void tidy();
  uint64_t kept_waiting_ns(uint64_t now) const;
  bool crowded(uint64_t now);
  bool alone(uint64_t now) const;
  bool doze(uint64_t now, uint64_t idle_ns);
  bool serve_while_needed();
  void nap();
  void run();

  alignas(64) std::atomic<uint32_t> state_{kAsleep};
  std::atomic<uint32_t> demand_{0};  // calls of note_demand since the last change of state
  uint32_t waker_cpu_ = 0;           // of the program thread that made the thread
  std::atomic<uint64_t> nap_until_ms_{0};
  std::atomic<long> id_{0};            // 0: there is no thread
  std::atomic<uint64_t> ended_us_{0};  // CPU time of threads that have ended
  os::CpuSet cpus_;

  // The thread's alone.
  alignas(64) uint64_t next_look_ = 0;  // when it next checks whether its CPU is free but for itself
  long preempted_ = 0;                  // how often it had been preempted, at the last check
  uint64_t preempted_ns_ = 0;           // when it last found that it had been
  uint64_t dozed_ns_ = 0;
  uint64_t waited_ns_ = 0;       // kept_waiting_ns, at the last check
  uint32_t active_clients_ = 0;  // how many had used stash or ring between the last two checks
  uint64_t nap_ms_ = kShortestNapMs;

  os::HelperThread thread_;
};

}  // namespace annex::support
