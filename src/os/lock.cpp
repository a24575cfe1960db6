// The lock: see lock.h.
#include "os/lock.h"

#include <linux/futex.h>

#include "os/forking.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

// Long enough for a holder on another core to finish its few dozen instructions, short where it isn't running.
constexpr int kSpins = 100;

}  // namespace

void Lock::lock() {
  if (try_lock()) return;
  if ((state_.load(std::memory_order_relaxed) & kForked) != 0 && this_thread_forks()) return;
  for (int i = 0; i < kSpins; ++i) {
    if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    pause();
  }
  sleep();
}

// Sleeps until the lock is this thread's. Others may sleep as well, so a thread that has slept takes it with kSleepers.
void Lock::sleep() {
  for (uint64_t seen = state_.load(std::memory_order_relaxed);;) {
    if (seen == 0) {
      if (state_.compare_exchange_weak(seen, held_by_this_thread() | kSleepers, std::memory_order_acquire)) return;
    } else if ((seen & kSleepers) != 0 ||
               state_.compare_exchange_weak(seen, seen | kSleepers, std::memory_order_relaxed)) {
      system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAIT_PRIVATE,
                  static_cast<long>(static_cast<uint32_t>(seen | kSleepers)));
      seen = state_.load(std::memory_order_relaxed);
    }
  }
}

void Lock::wake() { system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAKE_PRIVATE, 1); }

bool Lock::lock_within_ms(int milliseconds) {
  for (int tries = 0; tries < milliseconds * 10; ++tries) {
    if (try_lock()) return true;
    // As if it slept: a holder with long work is to stop.
    uint64_t seen = state_.load(std::memory_order_relaxed);
    if (seen != 0) state_.compare_exchange_strong(seen, seen | kSleepers, std::memory_order_relaxed);
    struct timespec time = {0, 100'000};
    system_call(SYS_nanosleep, reinterpret_cast<long>(&time), 0);
  }
  return false;
}

void Lock::unlock() {
  uint64_t seen = held_by_this_thread();
  if (state_.compare_exchange_strong(seen, 0, std::memory_order_release)) return;
  if ((seen & kForked) != 0) return;  // by the thread that forks: nobody else is let in
  state_.store(0, std::memory_order_release);
  wake();
}

void Lock::release_after_fork() {
  if ((state_.exchange(0, std::memory_order_release) & kSleepers) != 0) wake();
}

}  // namespace annex::os
