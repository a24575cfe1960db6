// What the launcher says on standard error, and the statuses it ends with when the program does not get to run.
#pragma once

namespace annex::cli {

// Once the program runs, its own status is what the caller sees. 126 and 127 are the shell's numbers for the same.
enum ExitStatus : int {
  kDone = 0,
  kCannotWrite = 1,      // help or version text could not be written
  kUsage = 2,            // wrong arguments, a program or installation that Annex can't serve, or no memory
  kNotExecutable = 126,  // the program is there but can't be executed
  kNotFound = 127,       // no such program, or its interpreter is missing
};

// One line "annex: ..." on standard error.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace annex::cli
