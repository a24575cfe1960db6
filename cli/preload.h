// The environment of the program: the library goes last in LD_PRELOAD.
#pragma once

namespace annex::cli {

// Puts the library behind what LD_PRELOAD holds, in place of any Annex library there (`annex run` inside `annex run`):
// a tool that watches malloc and calls the next one (heaptrack) has to come first. Another allocator in front, which
// calls no next one, is warned of. Returns false, having said so, when there is no memory for it.
bool preload(const char* library);

}  // namespace annex::cli
