// The lock's slow paths: see lock.h.
#include "os/lock.h"

#include <linux/futex.h>

#include "os/forking.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

// Long enough for a holder on another core to finish its few dozen instructions, short where it isn't running.
constexpr int kSpins = 100;

}  // namespace

void Lock::lock_slow() {
  if ((state_.load(std::memory_order_relaxed) & kForked) != 0 && this_thread_forks()) return;
  for (int i = 0; i < kSpins; ++i) {
    if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    pause();
  }
  sleep();
}

// Until the lock is this thread's. Others may sleep as well, so whoever wakes takes it with kSleepers.
void Lock::sleep() {
  for (uint32_t seen = state_.load(std::memory_order_relaxed);;) {
    if (seen == 0) {
      if (state_.compare_exchange_weak(seen, kHeld | kSleepers, std::memory_order_acquire)) return;
    } else if ((seen & kSleepers) != 0 ||
               state_.compare_exchange_weak(seen, seen | kSleepers, std::memory_order_relaxed)) {
      system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAIT_PRIVATE, seen | kSleepers);
      seen = state_.load(std::memory_order_relaxed);
    }
  }
}

void Lock::wake() { system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAKE_PRIVATE, 1); }

void Lock::unlock_slow(uint32_t state) {
  if ((state & kForked) != 0) return;  // by the thread that forks: nobody else is let in
  state_.store(0, std::memory_order_release);
  wake();
}

void Lock::let_go_after_fork() {
  if ((state_.exchange(0, std::memory_order_release) & kSleepers) != 0) wake();
}

}  // namespace annex::os
