// Messages of the library: see message.h.
#include "os/message.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "os/call_stack.h"
#include "os/standard_error.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

// Threads that have found an error.
constexpr int kMaxEnding = 8;
constinit std::atomic<long> ending[kMaxEnding] = {};

// False where this thread has found one before: in the program's handler, or since the handler left by longjmp.
bool is_first_of(long thread) {
  for (std::atomic<long>& slot : ending) {
    long found = 0;
    if (slot.compare_exchange_strong(found, thread)) return true;
    if (found == thread) return false;
  }
  return false;
}

constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }
constexpr int kCancel = 32;  // what glibc sends to a thread that is cancelled; its own sigprocmask can't block it

uint64_t set_mask(uint64_t mask) {
  uint64_t before = 0;
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), reinterpret_cast<long>(&before),
              sizeof mask);
  return before;
}

void send_abort() { system_call(SYS_tgkill, system_call(SYS_getpid), system_call(SYS_gettid), SIGABRT); }

// Whatever handler there is.
[[noreturn]] void end_at_once() {
  for (;;) {
    const unsigned long by_default[4] = {};  // a struct sigaction as the kernel has it
    system_call(SYS_rt_sigaction, SIGABRT, reinterpret_cast<long>(by_default), 0, sizeof(uint64_t));
    set_mask(~bit(SIGABRT));
    send_abort();
    system_call(SYS_exit_group, 128 + SIGABRT);  // the first process of a container, which such a signal doesn't end
  }
}

// The kernel ends the process if printing call stacks takes long. Names of functions are looked up under a lock of the
// loader's, whose holder may wait for one of ours.
constexpr long kSecondsToPrint = 2;

int start_timer() {
  struct sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  const struct itimerspec once = {{0, 0}, {kSecondsToPrint, 0}};
  int timer = -1;
  if (system_call(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event), reinterpret_cast<long>(&timer)) ==
      0) {
    system_call(SYS_timer_settime, timer, 0, reinterpret_cast<long>(&once), 0);
  }
  return timer;
}

// The name by which the program was started, without its folders.
void append_program(Text& text) {
  constexpr size_t kLongest = 40;
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path == nullptr) path = "?";
  if (const char* slash = strrchr(path, '/')) path = slash + 1;
  for (size_t i = 0; path[i] != '\0' && i < kLongest; ++i) {
    const bool printable = path[i] >= ' ' && path[i] != 0x7f;  // so that the line stays one
    text.append(printable ? path + i : "?", 1);
  }
}

void append_next(Text& text, const char* next) {
  const bool stack = call_stacks_are_available() && !call_stacks_are_prepared();
  if (stack) text << "; ANNEX_BACKTRACE=1 shows where";
  if (*next != '\0') text << (stack ? ", " : "; ") << next;
}

}  // namespace

void warn(const char* what, const char* detail) {
  char buffer[512];
  Text text(buffer, sizeof buffer - 1);
  text << "annex: " << what << detail;
  buffer[text.stored()] = '\n';
  write_all(standard_error(), buffer, text.stored() + 1);
}

Ending::Ending(const char* what, const char* next) : mask_(set_mask(~uint64_t{0})) {
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  char buffer[512];
  Text text(buffer, sizeof buffer - 1);
  text << "annex: " << what << " in ";
  append_program(text);
  text << "[" << static_cast<uint64_t>(system_call(SYS_getpid)) << "]";
  append_next(text, next);
  buffer[text.stored()] = '\n';
  write_all(standard_error(), buffer, text.stored() + 1);
  if (!is_first_of(system_call(SYS_gettid))) end_at_once();
  if (!call_stacks_are_prepared()) return;
  timer_ = start_timer();
  CallStack here;
  here.capture();
  here.print("  here:");
}

void Ending::end() {
  if (timer_ >= 0) system_call(SYS_timer_delete, timer_);
  set_mask((mask_ | bit(kCancel) | bit(SIGPIPE)) & ~bit(SIGABRT));  // SIGPIPE: the message may have met a closed pipe
  send_abort();
  end_at_once();
}

void fatal(const char* what, const char* next) { Ending(what, next).end(); }

}  // namespace annex::os
