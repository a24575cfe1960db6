// Whether the environment has anything to say: see options.h. Most often not; os/environment.cpp parses it.
#include "os/options.h"

#include <unistd.h>

#include <cstring>

#include "os/auxiliary.h"

namespace annex::os {

constinit Options options;

namespace {

// One look at the environment, not one for each option.
bool any_is_set() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "ANNEX_", 6) == 0) return true;
  }
  return false;
}

}  // namespace

void read_options() {
  // First: a library that interposes getauxval may allocate in it, and so call this function once more.
  const bool secure = auxiliary().secure;
  static constinit bool done = false;
  if (done || environ == nullptr) return;
  done = true;
  // Secure execution: the environment is that of somebody with fewer rights than the process.
  if (!secure && any_is_set()) parse_environment();
}

}  // namespace annex::os
