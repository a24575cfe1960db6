// The lock's slow paths: see lock.h.
#include "os/lock.h"

#include <linux/futex.h>

#include "os/system_call.h"

namespace annex::os {

namespace {

// Long enough for a holder on another core to finish its few dozen instructions, short where it isn't running.
constexpr int kSpins = 100;

}  // namespace

void Lock::lock_slow() {
  for (int i = 0; i < kSpins; ++i) {
    uint32_t expected = 0;
    if (state_.load(std::memory_order_relaxed) == 0 &&
        state_.compare_exchange_weak(expected, 1, std::memory_order_acquire)) {
      return;
    }
    pause();
  }
  while (state_.exchange(2, std::memory_order_acquire) != 0) {
    system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAIT_PRIVATE, 2);
  }
}

void Lock::wake() { system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAKE_PRIVATE, 1); }

}  // namespace annex::os
