// The page heap's lock, and who holds it: a signature says so.
//
//   const Locked&   the lock is held by the caller, throughout
//   Locked&         the lock is held by the caller, but let go for a while in the middle: what was read before may have
//                   changed
//   (neither)       the function takes it, or needs none
#pragma once

#include <cstdint>

#include "os/lock.h"

namespace annex {

extern constinit os::Lock page_heap_lock;

// Holds the lock for as long as it exists.
class Locked {
 public:
  Locked() { page_heap_lock.lock(); }
  ~Locked() { page_heap_lock.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // Where the lock has been taken already, by try_lock().
  struct Already {};
  explicit Locked(Already) {}
};

// Lets go of the lock for as long as it exists: with runs set aside, for the time that the kernel takes.
class Unlocked {
 public:
  explicit Unlocked(Locked& held);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // How many there are.
  static uint32_t count(const Locked&);
  // With the lock held: whether there are none but the calling thread's own, which a signal has interrupted.
  static bool none_of_others();
  // Waits for those of other threads that there are now, without the lock: what they have set aside is free again then.
  static void wait_for_others(Locked& held);
  // In the child of a fork there are none of others.
  static void forget_others();

 private:
  bool is_mine() const { return thread_ == __builtin_thread_pointer(); }

  void* const thread_;
  const uint64_t number_;  // the first one's is 1
  Unlocked* next_;
};

}  // namespace annex
