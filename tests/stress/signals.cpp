// A storm of signals that interrupts the allocator everywhere. The handler itself does not
// allocate.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>

#include "stress/harness.h"

using namespace annex_test;

namespace {

std::atomic<int> signals_seen{0};
static_assert(std::atomic<int>::is_always_lock_free);

void count_signal(int) {
  const int kept = errno;
  ++signals_seen;
  // The two calls that annex.h allows here.
  if (!annex_owns(&signals_seen) && annex_version()[0] != 0) errno = 99;
  errno = kept;
}

class Storm {
 public:
  Storm() {
    struct sigaction action = {};
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    DEMAND(sigaction(SIGALRM, &action, &old_) == 0);
    signals_seen = 0;
    const itimerval often{{0, 200}, {0, 200}};
    DEMAND(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  }
  ~Storm() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &old_, nullptr);
  }

 private:
  struct sigaction old_;
};

constexpr int kSignals = kSlowdown > 1 ? 200 : 1500;

}  // namespace

TEST(Signals, InterruptOneThread) {
  Slots slots;
  Random random(3);
  const Storm storm;
  // As long as it takes until enough signals have come: the machine's speed changes only the work
  // done meanwhile.
  while (signals_seen < kSignals) {
    trade(slots, random, 100);
    sched_yield();
  }
}

TEST(Signals, InterruptManyThreads) {
  Slots slots;
  const Storm storm;
  in_threads(6, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    while (signals_seen < kSignals) {
      trade(slots, random, 100);
      sched_yield();
    }
  });
}

TEST(Signals, ToChosenThreads) {
  // pthread_kill reaches threads wherever they are: in malloc, in free, in the system.
  Slots slots;
  const Storm storm;
  std::atomic<bool> stop{false};
  std::atomic<pthread_t> workers[3] = {};
  in_threads(4, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    if (id < 3) {
      workers[id] = pthread_self();
      while (!stop) trade(slots, random, 20);
      return;
    }
    for (const auto& worker : workers) {
      while (worker.load() == pthread_t{}) sched_yield();
    }
    for (int i = 0; i < kSignals; ++i) {
      DEMAND(pthread_kill(workers[i % 3], SIGALRM) == 0);
      if (i % 8 == 0) sched_yield();
    }
    while (signals_seen < kSignals / 10) sched_yield();
    stop = true;
  });
}
