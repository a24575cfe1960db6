// Messages of the library: one line on standard error, built without allocating.
//
// Synchronization: none needed; every line is one write(2).
#pragma once

#include "os/text.h"

namespace annex::os {

// "annex: <what>" and a newline on standard error.
void warn(const char* what, const char* detail = "");

// "annex: <what> 0x<address><detail>", with ANNEX_BACKTRACE=1 the call stack, then abort(). The one way out when the
// heap can no longer be trusted.
[[noreturn, gnu::cold, gnu::noinline]] void fatal(const char* what, const void* address, const char* detail = "");

}  // namespace annex::os
