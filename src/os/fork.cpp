// Fork: see fork.h.
#include "os/fork.h"

#include <sys/single_threaded.h>

#include "os/forking.h"
#include "os/system_call.h"

// libc's own lock of the list of streams, which glibc exports. It is recursive.
extern "C" {
[[gnu::weak]] void _IO_list_lock();
[[gnu::weak]] void _IO_list_unlock();
[[gnu::weak]] void _IO_list_resetlock();
}

namespace annex::os {

constinit Fork fork;
constinit std::atomic<pthread_t> forking_thread{0};

namespace {

// Longer than any thread that runs holds a lock.
constexpr int kMaxWaitMs = 200;

}  // namespace

bool Fork::begin() {
  if (this_thread_forks()) {
    ++depth_;
    return false;
  }
  const bool takes_streams = !__libc_single_threaded && _IO_list_lock != nullptr && _IO_list_unlock != nullptr &&
                             _IO_list_resetlock != nullptr;
  if (takes_streams) _IO_list_lock();
  one_at_a_time_.lock();
  forking_thread.store(this_thread(), std::memory_order_relaxed);
  has_streams_ = takes_streams;
  had_some_ = false;
  return true;
}

void Fork::hold_all(void (*hold_each)()) {
  searching_ = true;
  hold_each();
  searching_ = false;
  hold_each();
}

bool Fork::hold(Lock& lock) {
  if (lock.is_mine()) {
    had_some_ = true;
    return false;
  }
  if (searching_) return false;
  bool held = true;
  if (had_some_) {
    held = lock.lock_within_ms(kMaxWaitMs);
  } else {
    lock.lock();
  }
  if (held) lock.keep_across_fork();
  Lock*& last = held ? held_last_ : missed_last_;
  lock.before_ = last;
  last = &lock;
  return held;
}

bool Fork::hold_when(Lock& lock, bool (*ready)()) {
  while (hold(lock)) {
    if (ready()) return true;
    held_last_ = lock.before_;
    lock.release_after_fork();
    system_call(SYS_sched_yield);
  }
  return false;
}

// False where it was a handler's fork that has ended, and the outer one goes on.
template <class Release>
bool Fork::end(Release release) {
  if (depth_ > 0) {
    --depth_;
    return false;
  }
  while (Lock* lock = held_last_) {
    held_last_ = lock->before_;
    release(*lock);
  }
  forking_thread.store(0, std::memory_order_relaxed);
  release(one_at_a_time_);
  return true;
}

void Fork::end_in_parent() {
  if (depth_ == 0) missed_last_ = nullptr;
  const bool has_streams = has_streams_;  // the next thread that forks writes it
  if (end([](Lock& lock) { lock.release_after_fork(); }) && has_streams) _IO_list_unlock();
}

// If libc knew of threads, its fork has reset the lock of the list of streams by now, however often it was taken.
void Fork::end_in_child() {
  for (Lock* lock = missed_last_; lock != nullptr; lock = lock->before_) lock->reset_after_fork();
  missed_last_ = nullptr;
  if (has_streams_) _IO_list_resetlock();
  has_streams_ = false;
  end([](Lock& lock) { lock.reset_after_fork(); });
}

}  // namespace annex::os
