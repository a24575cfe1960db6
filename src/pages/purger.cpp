// The purger: see purger.h.
#include "pages/purger.h"

#include <algorithm>

#include "os/helper_thread.h"
#include "pages/page_heap.h"

namespace annex {

constinit std::atomic<void (*)()> take_from_idle{nullptr};

namespace {

constexpr long kShortestSleepMs = 10;
constexpr long kLongestSleepMs = 1000;

constinit os::HelperThread thread;

void run_purger(void*) {
  for (bool small = false;;) {
    const long wait = page_heap.purger_purges(&small);
    if (wait < 0) return;
    thread.sleep_ms(std::clamp(wait, kShortestSleepMs, kLongestSleepMs));
    if (thread.must_end()) break;
    if (void (*const take)() = take_from_idle.load(std::memory_order_relaxed)) take();
  }
  page_heap.purger_ended();
}

}  // namespace

void start_purger() {
  if (!page_heap.books.purger_wanted.exchange(false, std::memory_order_relaxed)) return;
  if (thread.start("annex-purge", run_purger, nullptr)) return;
  page_heap.purger_ended();
}

}  // namespace annex
