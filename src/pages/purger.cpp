// The purger: see purger.h.
#include "pages/purger.h"

#include <algorithm>

#include "os/all_threads.h"
#include "os/helper_thread.h"
#include "os/options.h"
#include "pages/page_heap.h"

namespace annex {

constinit std::atomic<bool (*)(bool (*stop)())> sweep_idle{nullptr};

namespace {

constexpr long kShortestSleepMs = 10;
constexpr long kLongestSleepMs = 1000;
constexpr long kUntilWoken = -1;

constinit os::HelperThread thread;

bool stops() { return thread.asked_to_end(); }

// Gives back what is due. Milliseconds until more is; kNothing: never, unless something happens; < 0: it is not needed.
long work(bool* small) {
  const auto sweep = sweep_idle.load(std::memory_order_relaxed);
  const bool all_swept = sweep != nullptr && sweep(stops);
  const long purge_due = page_heap.purger_purges(small);
  return all_swept ? purge_due : std::min<long>(purge_due, os::options.purge_delay_ms);
}

void run_purger(void*) {
  std::atomic<bool>& sleeps = page_heap.books.purger_sleeps;
  os::can_have_barriers();
  for (bool small = false; !thread.must_end();) {
    long wait = work(&small);
    if (wait == PageHeap::kNothing) {
      // It says so, and looks again: whatever happens later wakes it.
      const uint32_t signals = thread.signals();
      sleeps.store(true, std::memory_order_seq_cst);
      wait = work(&small);
      if (wait == PageHeap::kNothing) thread.sleep_ms(kUntilWoken, signals);
      sleeps.store(false, std::memory_order_seq_cst);
    }
    if (wait < 0) return;
    // What has woken it is not due yet.
    if (wait == PageHeap::kNothing) wait = os::options.purge_delay_ms;
    thread.sleep_ms(std::clamp(wait, kShortestSleepMs, kLongestSleepMs));
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
