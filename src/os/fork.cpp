// Fork: see fork.h.
#include "os/fork.h"

#include <sys/single_threaded.h>

#include "os/forking.h"
#include "os/system_call.h"

// libc's own for the list of streams: glibc exports them, and its locks may be taken again by the thread that has them.
extern "C" {
[[gnu::weak]] void _IO_list_lock();
[[gnu::weak]] void _IO_list_unlock();
[[gnu::weak]] void _IO_list_resetlock();
}

namespace annex::os {

constinit Fork fork;
constinit std::atomic<pthread_t> forking_thread{0};

namespace {

// Longer than a thread that was not stopped needs for what it does with a lock held.
constexpr int kPatienceMs = 200;

}  // namespace

bool Fork::begin() {
  if (this_thread_forks()) {
    ++within_;
    return false;
  }
  const bool takes_streams = !__libc_single_threaded && _IO_list_lock != nullptr && _IO_list_unlock != nullptr &&
                             _IO_list_resetlock != nullptr;
  if (takes_streams) _IO_list_lock();
  one_at_a_time_.lock();
  forking_thread.store(this_thread(), std::memory_order_relaxed);
  has_streams_ = takes_streams;
  has_some_ = false;
  return true;
}

void Fork::hold_all(void (*hold_each)()) {
  searches_ = true;
  hold_each();
  searches_ = false;
  hold_each();
}

bool Fork::hold(Lock& lock) {
  if (lock.is_mine()) {
    has_some_ = true;
    return false;
  }
  if (searches_) return false;
  bool held = true;
  if (has_some_) {
    held = lock.lock_within_ms(kPatienceMs);
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
    lock.let_go_after_fork();
    system_call(SYS_sched_yield);
  }
  return false;
}

// False where one of the handlers had forked, and the fork that it is a handler of goes on.
template <class LetGo>
bool Fork::end(LetGo let_go) {
  if (within_ > 0) {
    --within_;
    return false;
  }
  while (Lock* lock = held_last_) {
    held_last_ = lock->before_;
    let_go(*lock);
  }
  forking_thread.store(0, std::memory_order_relaxed);
  let_go(one_at_a_time_);
  return true;
}

void Fork::end_in_parent() {
  if (within_ == 0) missed_last_ = nullptr;
  const bool has_streams = has_streams_;  // the next thread that forks writes it
  if (end([](Lock& lock) { lock.let_go_after_fork(); }) && has_streams) _IO_list_unlock();
}

// libc has let go of its streams by now, however often they had been taken, if it knew of threads.
void Fork::end_in_child() {
  for (Lock* lock = missed_last_; lock != nullptr; lock = lock->before_) lock->reset_after_fork();
  missed_last_ = nullptr;
  if (has_streams_) _IO_list_resetlock();
  has_streams_ = false;
  end([](Lock& lock) { lock.reset_after_fork(); });
}

}  // namespace annex::os
