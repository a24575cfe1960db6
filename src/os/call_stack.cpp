// Call stacks: see call_stack.h.
#include "os/call_stack.h"

#include <execinfo.h>
#include <unistd.h>

#include <cerrno>

#include "os/text.h"

#pragma weak backtrace
#pragma weak backtrace_symbols_fd

namespace annex::os {

namespace {

constinit bool prepared = false;  // written before there is a second thread

}  // namespace

void prepare_call_stacks() {
  if (backtrace == nullptr || backtrace_symbols_fd == nullptr) return;
  const int saved = errno;
  void* frame;
  backtrace(&frame, 1);
  errno = saved;
  prepared = true;
}

void CallStack::take() {
  if (!prepared) return;
  const int saved = errno;
  count_ = backtrace(frames_, kMost);
  errno = saved;
}

void CallStack::print(const char* words) const {
  if (count_ == 0) return;
  char buffer[100];
  Text text(buffer, sizeof buffer);
  text << words << "\n";
  write_all(STDERR_FILENO, buffer, text.stored());
  backtrace_symbols_fd(frames_, count_, STDERR_FILENO);
}

}  // namespace annex::os
