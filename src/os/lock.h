// A mutual-exclusion lock of four bytes that never allocates: spins briefly, then sleeps in the kernel.
//
// States: 0 free, 1 held, 2 held with (perhaps) sleepers. Works in static storage before any constructor has run.
#pragma once

#include <atomic>
#include <cstdint>

namespace annex::os {

// Tells the core that this is a loop of waiting.
inline void pause() {
#if defined(__x86_64__)
  asm volatile("pause");
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() {
    if (!try_lock()) lock_slow();
  }
  bool try_lock() {
    uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
  }
  void unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) wake();
  }
  // In a forked child, whose parent held the lock across the fork: free again, sleepers forgotten.
  void reset_after_fork() { state_.store(0, std::memory_order_release); }

 private:
  [[gnu::noinline]] void lock_slow();
  [[gnu::noinline]] void wake();

  std::atomic<uint32_t> state_{0};
};

class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace annex::os
