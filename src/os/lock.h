// A mutual-exclusion lock that never allocates: spins briefly, then sleeps in the kernel. Works in static storage
// before any constructor has run.
//
// The thread that forks holds every lock of the library across the fork, and is let into them meanwhile (os/fork.h):
// for it alone, lock() and unlock() then do nothing.
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
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire);
  }
  void unlock() {
    uint32_t expected = kHeld;
    if (!state_.compare_exchange_strong(expected, 0, std::memory_order_release)) unlock_slow(expected);
  }

 private:
  friend class Fork;

  // The state is 0 where the lock is free, else kHeld and perhaps more.
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kSleepers = 2;  // threads may sleep until it is free
  static constexpr uint32_t kForked = 4;    // held across a fork, by the thread that forks

  [[gnu::noinline]] void lock_slow();
  [[gnu::noinline]] void unlock_slow(uint32_t state);
  void sleep();
  void wake();

  // For Fork.
  void keep_across_fork() { state_.fetch_or(kForked, std::memory_order_relaxed); }
  void let_go_after_fork();
  // In the child, where nobody sleeps on it.
  void reset_after_fork() { state_.store(0, std::memory_order_release); }

  std::atomic<uint32_t> state_{0};
  Lock* held_before_ = nullptr;  // of those held across a fork
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
