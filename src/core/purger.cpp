// The purger: see purger.h.
#include "core/purger.h"

#include <algorithm>

#include "core/arena.h"
#include "core/commitment.h"
#include "core/purge.h"
#include "os/helper_thread.h"
#include "os/options.h"

namespace annex {

namespace {

constexpr long kShortestSleepMs = 10;
constexpr long kLongestSleepMs = 1000;

constinit os::HelperThread thread;

void run_purger(void*) {
  for (bool small = false;;) {
    const long wait = purge_and_wait_ms(&small);
    if (wait < 0) return;
    thread.sleep_ms(std::clamp(wait, kShortestSleepMs, kLongestSleepMs));
    if (thread.must_end()) break;
  }
  os::Guard guard(arena_lock);
  commitment.purger_runs = false;
}

}  // namespace

void start_purger() {
  if (!commitment.purger_wanted.exchange(false, std::memory_order_relaxed)) return;
  if (thread.start("annex-purge", run_purger, nullptr)) return;
  os::Guard guard(arena_lock);
  commitment.purger_runs = false;
}

}  // namespace annex
