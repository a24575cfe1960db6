// Messages of the library: see message.h.
#include "os/message.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "os/call_stack.h"

namespace annex::os {

void warn(const char* what, const char* detail) {
  char buffer[512];
  Text text(buffer, sizeof buffer - 1);
  text << "annex: " << what << detail;
  buffer[text.stored()] = '\n';
  write_all(STDERR_FILENO, buffer, text.stored() + 1);
}

void fatal(const char* what, const void* address, const char* detail) {
  char buffer[256];
  Text text(buffer, sizeof buffer);
  text << "annex: " << what << " ";
  text.hex(reinterpret_cast<uintptr_t>(address)) << detail << "\n";
  write_all(STDERR_FILENO, buffer, text.stored());
  CallStack here;
  here.take();
  here.print("  here:");
  abort();
}

}  // namespace annex::os
