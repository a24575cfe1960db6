// Fork: see fork.h.
#include "os/fork.h"

#include "os/forking.h"

namespace annex::os {

constinit Fork fork;
constinit std::atomic<pthread_t> forking_thread{0};

bool Fork::begin() {
  if (this_thread_forks()) {
    ++within_;
    return false;
  }
  one_at_a_time_.lock();
  forking_thread.store(this_thread(), std::memory_order_relaxed);
  return true;
}

void Fork::hold(Lock& lock) {
  lock.lock();
  keep(lock);
}

void Fork::keep(Lock& lock) {
  lock.keep_across_fork();
  lock.held_before_ = held_last_;
  held_last_ = &lock;
}

template <class LetGo>
void Fork::end(LetGo let_go) {
  if (within_ > 0) {
    --within_;
    return;
  }
  while (Lock* lock = held_last_) {
    held_last_ = lock->held_before_;
    let_go(*lock);
  }
  forking_thread.store(0, std::memory_order_relaxed);
  let_go(one_at_a_time_);
}

void Fork::end_in_parent() {
  end([](Lock& lock) { lock.let_go_after_fork(); });
}

void Fork::end_in_child() {
  end([](Lock& lock) { lock.reset_after_fork(); });
}

}  // namespace annex::os
