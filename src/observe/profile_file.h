// A heap profile, begun and written to its raw file (profile/raw_file.h).
#pragma once

#include <cstdint>

namespace annex::observe {

// Begins a heap profile, or goes on with another rate (profile/samples.h).
bool start_profile(uint64_t rate);

// Writes it to a descriptor. False where something can't be written (errno).
bool write_profile(int descriptor);

// To that path, with each %p replaced by the process's number. `apart`: where there is none, and the process is the
// child of one in which the profile began, the number is appended. False where that fails, of which a line says why.
bool write_profile_to(const char* path, bool apart);

}  // namespace annex::observe
