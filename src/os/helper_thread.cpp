// Helper threads: see helper_thread.h.
#include "os/helper_thread.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

#include "os/clock.h"
#include "os/fork.h"
#include "os/lock.h"
#include "os/privileges.h"
#include "os/system_call.h"

namespace annex::os {

constinit std::atomic<long> helpers_process{0};
constinit std::atomic<bool> HelperThread::ruled_out_{false};

namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr uint64_t kCompareMs = 50;

constinit Lock helpers_lock;
constinit HelperThread* helpers = nullptr;     // every one that was ever started; under the lock
constinit std::atomic<uint32_t> suspended{0};  // how many NoHelpers there are

bool in_own_process() { return helpers_process.load(std::memory_order_relaxed) == system_call(SYS_getpid); }

// So that no signal handler of the program's interrupts a thread that holds the lock. Signals that libc uses itself are
// not blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

class ErrnoKept {
 public:
  ~ErrnoKept() { errno = saved_; }

 private:
  int saved_ = errno;
};

}  // namespace

// --- starting one ---------------------------------------------------------------------------------------------------

// Whether the previous thread has ended. If so it is joined, and libc may reuse its stack.
bool HelperThread::has_ended() {
  if (made_ && pthread_tryjoin_np(thread_, nullptr) == 0) made_ = false;
  return !made_;
}

// A small stack where that is enough for the program's static thread-local storage, else one of the usual size.
bool HelperThread::make() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int error = pthread_create(&thread_, &attributes, run, this);
  pthread_attr_destroy(&attributes);
  if (error == EINVAL) error = pthread_create(&thread_, nullptr, run, this);
  return error == 0;
}

void HelperThread::add_to_list() {
  if (listed_) return;
  listed_ = true;
  next_ = helpers;
  helpers = this;
}

HelperThread::Start HelperThread::start(const char* name, Body* body, void* argument) {
  if (ruled_out() || !in_own_process()) return Start::kFailed;
  if (suspended.load() != 0) return Start::kNotNow;
  ErrnoKept errno_kept;
  SignalsBlocked blocked;
  if (!helpers_lock.try_lock()) return Start::kNotNow;
  Start done = Start::kNotNow;
  if (suspended.load() == 0 && has_ended()) {
    add_to_list();
    name_ = name;
    body_ = body;
    argument_ = argument;
    maker_ = system_call(SYS_gettid);
    signals_.store(0, std::memory_order_relaxed);
    made_ = make();
    done = made_ ? Start::kMade : Start::kFailed;
  }
  helpers_lock.unlock();
  return done;
}

// --- in the thread --------------------------------------------------------------------------------------------------

void* HelperThread::run(void* self) {
  HelperThread* thread = static_cast<HelperThread*>(self);
  thread->id_ = system_call(SYS_gettid);
  thread->compared_ms_ = now_ms();
  system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(thread->name_));
  thread->body_(thread->argument_);
  return nullptr;
}

bool HelperThread::must_end() {
  if (asked_to_end()) return true;
  const uint64_t now = now_ms();
  if (now - compared_ms_ < kCompareMs) return false;
  compared_ms_ = now;
  const Privileges mine = privileges_of(id_);
  Privileges makers = privileges_of(maker_);
  if (!makers.known) makers = privileges_of(maker_ = helpers_process.load(std::memory_order_relaxed));
  if (mine == makers) return false;
  if (makers.known && mine.filters != makers.filters) HelperThread::ruled_out_.store(true, std::memory_order_relaxed);
  return true;
}

void HelperThread::sleep_ms(long milliseconds, uint32_t seen) {
  if ((seen & kEnd) != 0) return;
  struct timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000};
  system_call(SYS_futex, reinterpret_cast<long>(&signals_), FUTEX_WAIT_PRIVATE, seen,
              milliseconds < 0 ? 0 : reinterpret_cast<long>(&time));
}

void HelperThread::wake() {
  signals_.fetch_add(kWoken, std::memory_order_seq_cst);
  system_call(SYS_futex, reinterpret_cast<long>(&signals_), FUTEX_WAKE_PRIVATE, INT_MAX);
}

// --- all of them ----------------------------------------------------------------------------------------------------

void hold_helpers_lock_for_fork() { fork.hold(helpers_lock); }

void forget_helpers_after_fork() {
  for (HelperThread* thread = helpers; thread != nullptr; thread = thread->next_) thread->made_ = false;
  suspended.store(0);
  if (helpers_process.load(std::memory_order_relaxed) != 0) allow_helpers();
}

namespace {

// To the kernel, a thread that has been joined belongs to the process a little longer, and until it is gone the process
// is refused a user namespace. It is not waited for without end: another thread may have got its id.
void wait_for_kernel(long id) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (system_call(SYS_tgkill, system_call(SYS_getpid), id, 0) == -ESRCH) return;
    struct timespec time = {0, 50'000};
    system_call(SYS_nanosleep, reinterpret_cast<long>(&time), 0);
  }
}

}  // namespace

NoHelpers::NoHelpers() : active_(in_own_process()) {
  if (!active_) return;
  ErrnoKept errno_kept;
  SignalsBlocked blocked;
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);  // pthread_join is a cancellation point
  suspended.fetch_add(1);
  {
    Guard guard(helpers_lock);
    for (HelperThread* thread = helpers; thread != nullptr; thread = thread->next_) {
      thread->signals_.fetch_or(HelperThread::kEnd, std::memory_order_relaxed);
      if (thread->made_) system_call(SYS_futex, reinterpret_cast<long>(&thread->signals_), FUTEX_WAKE_PRIVATE, INT_MAX);
    }
    for (HelperThread* thread = helpers; thread != nullptr; thread = thread->next_) {
      if (!thread->made_) continue;
      pthread_join(thread->thread_, nullptr);
      wait_for_kernel(thread->id_);
      thread->made_ = false;
    }
  }
  pthread_setcancelstate(cancel_state, nullptr);
}

NoHelpers::~NoHelpers() {
  if (active_) suspended.fetch_sub(1);
}

void NoHelpers::for_good() {
  if (active_) HelperThread::ruled_out_.store(true, std::memory_order_relaxed);
}

}  // namespace annex::os
