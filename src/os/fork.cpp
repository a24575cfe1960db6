// Fork: see fork.h.
#include "os/fork.h"

#include "os/system_call.h"

namespace annex::os {

constinit Fork fork;

bool Fork::begin() {
  if (here()) {
    ++within_;
    return false;
  }
  one_at_a_time_.lock();
  id_ = system_call(SYS_gettid);
  thread_.store(pthread_self(), std::memory_order_relaxed);
  return true;
}

// To pthread_self, a helper thread is the thread that made it. In a forked child, which has none, the thread that
// forked is the process's first.
bool Fork::is_no_helper() const {
  const long id = system_call(SYS_gettid);
  return id == id_ || id == system_call(SYS_getpid);
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
  thread_.store(0, std::memory_order_relaxed);
  let_go(one_at_a_time_);
}

void Fork::end_in_parent() {
  end([](Lock& lock) { lock.let_go_after_fork(); });
}

void Fork::end_in_child() {
  end([](Lock& lock) { lock.reset_after_fork(); });
}

}  // namespace annex::os
