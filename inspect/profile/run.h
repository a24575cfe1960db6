// Runs a program under the launcher, and waits for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace annex::inspect {

struct Ended {
  pid_t process;
  int status;    // as a shell has it: 128 and the signal's number where one ended it
  bool started;  // false: the launcher has said why not
};

struct RunOptions {
  std::string mode;  // "": the launcher's default
  std::vector<std::string> program;
  std::string pattern;  // ANNEX_PROFILE
  std::string rate;     // ANNEX_PROFILE_RATE; "": the library's default
};

Ended run_program(const RunOptions& options);

}  // namespace annex::inspect
