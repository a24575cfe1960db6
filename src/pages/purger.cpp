// The purger: see purger.h.
#include "pages/purger.h"

#include <algorithm>

#include "os/all_threads.h"
#include "os/clock.h"
#include "os/control.h"
#include "os/helper_thread.h"
#include "os/memory_pressure.h"
#include "os/options.h"
#include "pages/page_heap.h"

namespace annex {

constinit std::atomic<const Sweeper*> sweeper{nullptr};
constinit std::atomic<void (*)()> answer_control{nullptr};

namespace {

constexpr long kShortestSleepMs = 10;
constexpr long kLongestSleepMs = 1000;
constexpr long kUntilWoken = -1;

constinit os::HelperThread thread;

bool stops() { return thread.asked_to_end(); }

long time_to_sleep(long wait_ms) { return std::clamp(wait_ms, kShortestSleepMs, kLongestSleepMs); }
// What happens to a heap in that time says whether it is idle.
uint64_t time_between_sweeps(bool at_once = false) {
  constexpr int64_t kShortestMs = 100;
  return static_cast<uint64_t>(std::max<int64_t>(at_once ? 0 : os::options.purge_delay_ms, kShortestMs));
}

// All that a purger does, one piece after the other.
class Work {
 public:
  // Gives back what is due, and under memory pressure what will be. Milliseconds until more is; kNothing: never, unless
  // something happens; < 0: the purger is not needed.
  long step() {
    const bool at_once = is_pressed();
    const long until_sweep = sweep(at_once);
    const long wait = std::min(until_sweep, page_heap.purger_purges(&small_, at_once));
    if (at_once && wait >= 0) page_heap.purger_rests();
    more_to_come_ = wait != PageHeap::kNothing;
    return wait;
  }

 private:
  // Not asked where nothing is due, nor where it would change nothing.
  bool is_pressed() { return more_to_come_ && os::options.purge_delay_ms > 0 && pressure_.look(os::now_ms()); }

  long sweep(bool at_once) {
    const Sweeper* const heaps = sweeper.load(std::memory_order_relaxed);
    if (heaps == nullptr) return PageHeap::kNothing;
    const uint64_t now = os::now_ms();
    if (now >= swept_ms_ + time_between_sweeps(at_once)) {
      all_swept_ = heaps->sweep(stops);
      swept_ms_ = now;
    } else if (all_swept_) {
      all_swept_ = heaps->all_rest();
    }
    return all_swept_ ? PageHeap::kNothing : static_cast<long>(swept_ms_ + time_between_sweeps() - now);
  }

  uint64_t swept_ms_ = os::now_ms();  // when it last looked at the heaps
  bool all_swept_ = false;
  bool small_ = false;  // the heap, when it was last seen
  bool more_to_come_ = false;
  os::MemoryPressure pressure_;
};

void run_purger(void*) {
  std::atomic<bool>& sleeps = page_heap.books.purger_sleeps;
  os::can_have_barriers();
  for (Work work; !thread.must_end();) {
    long wait = work.step();
    if (wait == PageHeap::kNothing) {
      page_heap.purger_rests();
      // It says so, and looks again: whatever happens later wakes it.
      const uint32_t signals = thread.signals();
      sleeps.store(true, std::memory_order_seq_cst);
      wait = work.step();
      if (wait == PageHeap::kNothing) thread.sleep_ms(kUntilWoken, signals);
      sleeps.store(false, std::memory_order_seq_cst);
    }
    if (wait < 0) return;
    // What has woken it is not due yet.
    if (wait == PageHeap::kNothing) wait = os::options.purge_delay_ms;
    thread.sleep_ms(time_to_sleep(wait));
  }
  page_heap.purger_ended();
}

}  // namespace

void start_purger() {
  // Another process sets this one last: what it asked for before is seen here, or at the next slow path.
  if (!page_heap.books.slow_path_called.exchange(false, std::memory_order_seq_cst)) return;
  const auto answer = answer_control.load(std::memory_order_relaxed);
  if (answer != nullptr && os::control.wanted.load(std::memory_order_relaxed) != 0) answer();
  if (!page_heap.books.purger_wanted.exchange(false, std::memory_order_relaxed)) return;
  switch (thread.start("annex-purge", run_purger, nullptr)) {
    case os::HelperThread::Start::kMade:
      return;
    case os::HelperThread::Start::kNotNow:  // at the next slow path: there may be none any more in a second
      page_heap.books.purger_wanted.store(true, std::memory_order_relaxed);
      return page_heap.books.slow_path_called.store(true, std::memory_order_relaxed);
    case os::HelperThread::Start::kFailed:
      return page_heap.purger_ended(true);
  }
}

void wake_sleeping_purger() {
  if (page_heap.books.purger_sleeps.exchange(false, std::memory_order_seq_cst)) thread.wake();
}

}  // namespace annex
