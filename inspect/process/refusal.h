// Why the system does not let one process look into another, in words.
#pragma once

#include <sys/types.h>

namespace annex::inspect {

// Throws Failure.
[[noreturn]] void refuse(pid_t process);

}  // namespace annex::inspect
