// The purger: see purger.h.
#include "pages/purger.h"

#include <algorithm>

#include "os/all_threads.h"
#include "os/clock.h"
#include "os/helper_thread.h"
#include "os/options.h"
#include "pages/page_heap.h"

namespace annex {

constinit std::atomic<const Sweeper*> sweeper{nullptr};

namespace {

constexpr long kShortestSleepMs = 10;
constexpr long kLongestSleepMs = 1000;
constexpr long kUntilWoken = -1;

constinit os::HelperThread thread;

bool stops() { return thread.asked_to_end(); }

long time_to_sleep(long wait_ms) { return std::clamp(wait_ms, kShortestSleepMs, kLongestSleepMs); }
// What happens to a heap in that time says whether it is idle.
long time_between_sweeps() { return std::clamp<long>(os::options.purge_delay_ms, 100, kLongestSleepMs); }

// All that a purger does, one piece after the other.
class Work {
 public:
  // Gives back what is due. Milliseconds until more is; kNothing: never, unless something happens; < 0: the purger is
  // not needed.
  long step() {
    const long until_sweep = sweep();
    return std::min(until_sweep, page_heap.purger_purges(&small_));
  }

 private:
  long sweep() {
    const Sweeper* const heaps = sweeper.load(std::memory_order_relaxed);
    if (heaps == nullptr) return PageHeap::kNothing;
    const uint64_t now = os::now_ms();
    if (now >= next_ms_) {
      all_swept_ = heaps->sweep(stops);
      next_ms_ = now + static_cast<uint64_t>(time_between_sweeps());
    } else if (all_swept_) {
      all_swept_ = heaps->all_rest();
    }
    return all_swept_ ? PageHeap::kNothing : static_cast<long>(next_ms_ - now);
  }

  uint64_t next_ms_ = os::now_ms() + static_cast<uint64_t>(time_between_sweeps());  // when the heaps are swept again
  bool all_swept_ = false;
  bool small_ = false;  // the heap, when it was last seen
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
  if (!page_heap.books.purger_wanted.exchange(false, std::memory_order_relaxed)) return;
  if (thread.start("annex-purge", run_purger, nullptr)) return;
  page_heap.purger_ended(true);
}

void wake_sleeping_purger() {
  if (page_heap.books.purger_sleeps.exchange(false, std::memory_order_seq_cst)) thread.wake();
}

}  // namespace annex
