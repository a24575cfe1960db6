// Call stacks: see call_stack.h.
#include "os/call_stack.h"

#include <execinfo.h>

#include <cerrno>

#include "os/standard_error.h"
#include "os/text.h"

#pragma weak backtrace
#pragma weak backtrace_symbols_fd

namespace annex::os {

namespace {

constinit bool prepared = false;  // written before there is a second thread

}  // namespace

bool call_stacks_are_available() { return backtrace != nullptr && backtrace_symbols_fd != nullptr; }

bool call_stacks_are_prepared() { return prepared; }

void prepare_call_stacks() {
  if (!call_stacks_are_available()) return;
  const int saved = errno;
  void* frame;
  backtrace(&frame, 1);
  errno = saved;
  prepared = true;
}

int capture_stack(void** frames, int most) {
  if (!prepared) return 0;
  const int saved = errno;
  const int count = backtrace(frames, most);
  errno = saved;
  return count;
}

void CallStack::capture() { count_ = capture_stack(frames_, kMaxFrames); }

void CallStack::print(const char* title) const {
  const int file = standard_error();
  if (count_ == 0 || file < 0) return;
  char buffer[100];
  Text text(buffer, sizeof buffer);
  text << title << "\n";
  write_all(file, buffer, text.stored());
  backtrace_symbols_fd(frames_, count_, file);
}

}  // namespace annex::os
