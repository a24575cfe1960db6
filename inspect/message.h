// What the commands say on standard error, and the statuses that they end with.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace annex::inspect {

enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,      // the work could not be done: a file that can't be read or written, a process that went away
  kUsage = 2,       // wrong arguments
  kNoAnnex = 3,     // the process is there, but has no Annex, or another version of it
  kNotAllowed = 4,  // the process is another user's, or the system forbids to look into it
  kNoProcess = 5,   // there is no such process
};

// One line "annex: ..." on standard error.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  fmt::print(stderr, "annex: {}\n", fmt::format(format, std::forward<Values>(values)...));
}

// Ends the command with one line and that status.
struct Failure : std::runtime_error {
  Failure(ExitStatus status, const std::string& what) : std::runtime_error(what), status(status) {}
  ExitStatus status;
};

}  // namespace annex::inspect
