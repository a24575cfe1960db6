// Labels: what the program says of the calling thread's allocations (annex_profile_label), such as which request or
// tenant they serve. A thread has a set of them; sites are kept apart by set.
//
// Synchronization: any thread, with no lock held.
#pragma once

#include <cstdint>

namespace annex::profile {

// In a thread's set, whose number is *set (0: no labels), the label of that key has that value from now on; nullptr: is
// not in it any more. False where memory is exhausted, or there are 16: then nothing changes.
bool set_label(uint32_t* set, const char* key, const char* value);

}  // namespace annex::profile
