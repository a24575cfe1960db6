// A heap profile of a running process.
#pragma once

#include <sys/types.h>

#include <string>

namespace annex::inspect {

// The text of a raw file (src/observe/profile_file.h), of what is known by now. Where no profile is on, one is begun at
// the default rate, and ended after so many seconds. Throws Failure.
std::string raw_profile_of(pid_t process, double seconds = 30);

}  // namespace annex::inspect
