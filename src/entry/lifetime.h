// Start and end of the library in a process: the environment, fork handlers, statistics at exit.
#pragma once

namespace annex::entry {

// Refers to lifetime.cpp, so that a static link that takes anything of Annex takes its constructor too.
extern const char kLifetime;
[[gnu::used]] static const char* const lifetime_anchor = &kLifetime;

}  // namespace annex::entry
