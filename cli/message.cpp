// The launcher's messages: see message.h.
#include "message.h"

#include <cstdarg>
#include <cstdio>

namespace annex::cli {

void say(const char* format, ...) {
  char line[8192];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(stderr, "annex: %s\n", line);
}

}  // namespace annex::cli
