// The formats that a profile is written in: docs/profiling-formats.md.
#pragma once

#include <string>

#include "profile/profile.h"

namespace annex::inspect {

std::string pprof(const Profile& profile);                    // profile.proto, gzipped
std::string collapsed(const Profile& profile, Value value);   // "outermost;...;innermost NUMBER" lines
std::string speedscope(const Profile& profile, Value first);  // all values; `first` is shown first
std::string document(const Profile& profile);                 // JSON: all that the page shows
std::string page(const Profile& profile, Value first);        // HTML, with nothing from elsewhere

}  // namespace annex::inspect
