// The environment of the program: the library goes last in LD_PRELOAD.
#pragma once

namespace annex::cli {

// Puts the library behind what LD_PRELOAD holds, as a tool that watches malloc and calls the next one (heaptrack) has
// to come first. Other Annex libraries there (`annex run` inside `annex run`) are left out. An allocator that stays in
// front calls no next one, so it gets a warning. Returns false, having said so, when there is no memory.
bool preload(const char* library);

}  // namespace annex::cli
