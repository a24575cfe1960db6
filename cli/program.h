// Finding the program to run, and judging whether a preloaded library will reach it.
#pragma once

#include <climits>

#include "message.h"

namespace annex::cli {

// Looks the command up as execvp does: a name with a slash is a path, any other is searched for on PATH. Writes the
// path and returns kDone, or says what is wrong and returns the status to end with.
ExitStatus find_program(const char* command, char (&path)[PATH_MAX]);

// Whether find_program would find it. Says nothing.
bool is_program(const char* command);

// Whether the dynamic loader will preload into this program: follows "#!" to the interpreter, and that to its ELF
// header. Returns kDone (perhaps after a warning), or says what is wrong and returns the status to end with.
ExitStatus check_preloadable(const char* path);

}  // namespace annex::cli
