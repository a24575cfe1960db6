// Memory for what a profile writes down: records that are never given back.
//
// Synchronization: profile::lock.
#pragma once

#include <cstddef>

namespace annex::profile {

// All zeros, aligned to 8 bytes; nullptr where memory is exhausted.
void* new_record(size_t bytes);
// A copy of a text; nullptr likewise.
const char* new_text(const char* text);

}  // namespace annex::profile
