// The commit that the launcher was built from.
#pragma once

namespace annex::cli {

// " (1a2b3c4d5e6f)" or "": written at each build (cmake/commit.cmake).
extern const char kCommit[];

}  // namespace annex::cli
