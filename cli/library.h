// Where the allocator's shared library is, and other programs, seen from the launcher's own place.
#pragma once

#include <climits>

namespace annex::cli {

struct Flavour {
  const char* mode;  // as in --mode
  const char* file;  // the library's name
};

inline constexpr Flavour kFlavours[] = {
    {"shared", "libannex.so"},  // the default: first
    {"solo", "libannex-solo.so"},
    {"offload", "libannex-offload.so"},
    {"hardened", "libannex-hardened.so"},
};

// Where a program of that name belongs, in the launcher's own directory. False where that can't be told.
bool find_beside_launcher(const char* name, char (&path)[PATH_MAX]);

// Finds the flavour's library beside the launcher (a build tree) or in the lib directory next to the launcher's bin (an
// installation). Writes its absolute path and returns true, or says why not.
bool find_library(const Flavour& flavour, char (&path)[PATH_MAX]);

}  // namespace annex::cli
