// The environment of the program: the library goes first in LD_PRELOAD.
#pragma once

namespace annex::cli {

// Puts the library before what LD_PRELOAD holds, in place of any Annex library there (`annex run`
// inside `annex run`). Returns false, having said so, when there is no memory for it.
bool preload(const char* library);

}  // namespace annex::cli
