// Messages of the library: one line on standard error (os/standard_error.h), built without allocating.
//
// Synchronization: none needed; every line is one write(2).
#pragma once

#include <cstdint>

#include "os/text.h"

namespace annex::os {

// "annex: <what>" and a newline on standard error.
void warn(const char* what, const char* detail = "");

// How a process ends whose heap can't be trusted any more, in the thread that found the error: a line that says what is
// wrong and, with ANNEX_BACKTRACE=1, the call stack; then SIGABRT, as abort() sends it, so that the program's handler
// runs, or a core dump is made.
//
// The process ends whatever the thread's signal mask is, and whatever the handler does: return, find an error itself,
// or be none. A pending cancellation of the thread does not stop it in the middle. (A handler may leave by longjmp, as
// out of abort(); the thread's next error then ends the process at once.)
//
// abort() itself is not called: a program may define it, and since glibc 2.41 it leaves SIGABRT blocked where it was.
// No lock is taken, so this may be called with any held; a handler that then allocates may wait for that lock for ever,
// as with glibc's malloc.
class Ending {
 public:
  // "annex: <what> in <program>[<process id>]; <what to do next>".
  explicit Ending(const char* what, const char* next = "");
  [[noreturn]] void end();

 private:
  uint64_t mask_;   // the thread's signals as they were
  int timer_ = -1;  // ends the process in the middle, if call stacks take too long to print
};

// Both at once.
[[noreturn, gnu::cold, gnu::noinline]] void fatal(const char* what, const char* next = "");

}  // namespace annex::os
