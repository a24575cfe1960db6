// What the launcher needs to know of an executable file before it hands it to the kernel.
#pragma once

#include <climits>
#include <cstddef>

namespace annex::cli {

enum class Kind {
  kUnreadable,    // executable perhaps, but its contents are closed to us
  kScript,        // "#!": interpreter and its one argument are filled in
  kText,          // neither ELF nor "#!": execvp gives such a file to the shell
  kDynamic,       // ELF for this machine, with a loader: interpreter is filled in
  kStatic,        // ELF for this machine, without a loader
  kOtherClass,    // ELF of another word size
  kOtherMachine,  // ELF for another processor
};

struct Executable {
  Kind kind;
  char interpreter[PATH_MAX];  // of a script or a dynamic program
  char argument[PATH_MAX];     // of a script's interpreter; "" without one
  const char* sanitizer;       // that a dynamic program is built with, or nullptr
  bool own_malloc;             // a dynamic program defines malloc itself
};

// Reads the file's header, and of a dynamic program its symbols and needed libraries. Says nothing.
Executable inspect(const char* path);

}  // namespace annex::cli
