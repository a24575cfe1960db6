// A mutual-exclusion lock that never allocates: spins briefly, then sleeps in the kernel. Works in static storage
// before any constructor has run.
//
// A thread that forks holds every lock of the library across the fork (os/fork.h); for it alone, lock() and unlock() do
// nothing meanwhile. A lock knows its holder, since a thread may fork in the handler of a signal that came while it
// held the lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace annex::os {

// Tells the CPU that this is a loop that waits.
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

  void lock();
  bool try_lock() {
    uint64_t expected = 0;
    return state_.compare_exchange_strong(expected, held_by_this_thread(), std::memory_order_acquire);
  }
  void unlock();
  // For its holder: whether another thread waits for it.
  bool is_wanted() const { return (state_.load(std::memory_order_relaxed) & kSleepers) != 0; }

 private:
  friend class Fork;

  // The state is 0 where the lock is free, else the holder's thread pointer and flags. A thread that goes to sleep
  // compares the lower half alone, in which the flags are (a futex has 32 bits).
  static constexpr uint64_t kHeld = 1;
  static constexpr uint64_t kSleepers = 2;  // threads may sleep until it is free
  static constexpr uint64_t kForked = 4;    // held across a fork, by the thread that forks
  static constexpr uint64_t kFlags = 7;     // a thread pointer is a multiple of 16

  static uint64_t held_by_this_thread() { return reinterpret_cast<uint64_t>(__builtin_thread_pointer()) | kHeld; }

  void sleep();
  void wake();

  // For Fork.
  bool is_mine() const { return ((state_.load(std::memory_order_relaxed) & ~kFlags) | kHeld) == held_by_this_thread(); }
  // False where it is still held after so long.
  bool lock_within_ms(int milliseconds);
  void keep_across_fork() { state_.fetch_or(kForked, std::memory_order_relaxed); }
  void release_after_fork();
  // In the child, where nobody sleeps on it.
  void reset_after_fork() { state_.store(0, std::memory_order_release); }

  std::atomic<uint64_t> state_{0};
  Lock* before_ = nullptr;  // in one of Fork's lists
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

// For long work with a lock held: true when it is to stop, as another thread waits for the lock, or asked() is true.
struct Stop {
  const Lock* held = nullptr;
  bool (*asked)() = nullptr;
  bool operator()() const { return (held != nullptr && held->is_wanted()) || (asked != nullptr && asked()); }
};

}  // namespace annex::os
