// A process that runs on Annex, to be looked into: found, or a Failure that says why not.
#pragma once

#include <string>

#include "observe/inspection.h"
#include "process/memory.h"

namespace annex::inspect {

struct Target {
  Memory memory;
  std::string name;  // of the program
  observe::Inspection annex;

  std::string version() const { return annex.version; }
};

// A thread's number does as well. Throws Failure: no such process, one that has ended, a kernel thread, none that may
// be looked into, none with Annex, or with another version of it.
Target open_target(pid_t process);

}  // namespace annex::inspect
