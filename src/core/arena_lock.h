// The arena lock: guards the arenas, their free runs and the books (commitment.h).
#pragma once

#include <cstdint>

#include "os/lock.h"

namespace annex {

extern constinit os::Lock arena_lock;

// Lets go of the arena lock, in the middle of what is done under it, for as long as this exists: with runs set aside,
// for the time that the kernel takes.
class LetGo {
 public:
  LetGo();
  ~LetGo();
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

  // How many there are.
  static uint32_t count();
  // With the lock held: whether there are none but the calling thread's own, which a signal has interrupted.
  static bool none_of_others();
  // In the child of a fork there are none of others.
  static void forget_others();

 private:
  bool is_mine() const { return thread_ == __builtin_thread_pointer(); }

  void* const thread_;
  LetGo* next_;
};

}  // namespace annex
