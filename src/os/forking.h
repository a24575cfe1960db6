// Which thread forks: from the first of the library's fork handlers to the last (os/fork.h).
#pragma once

#include <pthread.h>

#include <atomic>

namespace annex::os {

// 0 where none does; the same in parent and child.
extern constinit std::atomic<pthread_t> forking_thread;

// What pthread_self() returns. That function is not called, since another library may interpose it.
inline pthread_t this_thread() { return reinterpret_cast<pthread_t>(__builtin_thread_pointer()); }

inline bool this_thread_forks() {
  const pthread_t thread = forking_thread.load(std::memory_order_relaxed);
  return thread != 0 && thread == this_thread();
}

}  // namespace annex::os
