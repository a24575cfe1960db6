// Messages of the library: one line on standard error (os/standard_error.h), built without allocating.
//
// Synchronization: none needed; every line is one write(2).
#pragma once

#include <cstdint>

#include "os/text.h"

namespace annex::os {

// "annex: <what>" and a newline on standard error.
void warn(const char* what, const char* detail = "");

// How a process ends whose heap can't be trusted. In the thread that found the error, whichever that is: a line that
// says what it is and, with ANNEX_BACKTRACE=1, the call stack; then SIGABRT, as abort() sends it, so that the program's
// handler runs, or a core dump is made. The process ends whatever the thread's signal mask is, whether the handler
// returns, is none, or meets an error itself, and with a cancellation of the thread pending, which would otherwise take
// the thread out of the middle of this. (A handler may leave by longjmp, as out of abort(); the thread's next error
// then ends the process at once.)
//
// Not by abort() itself, which a program may define, and which since glibc 2.41 leaves SIGABRT blocked where it was. No
// lock is taken, so this may be called under any; the handler that then allocates may wait for it for ever, as with
// glibc's malloc.
class Ending {
 public:
  // "annex: <what> 0x<address><detail> in <program>[<process id>]; <what to do next>".
  Ending(const char* what, const void* address, const char* detail, const char* next);
  [[noreturn]] void end();

 private:
  uint64_t mask_;   // the thread's signals as they were
  int timer_ = -1;  // ends the process in the middle, if call stacks take too long to print
};

// Both.
[[noreturn, gnu::cold, gnu::noinline]] void fatal(const char* what, const void* address, const char* detail = "",
                                                  const char* next = "");

}  // namespace annex::os
