// A word that nobody can guess.
#pragma once

#include <cstdint>

namespace annex::os {

// From the kernel's random numbers; where those are not to be had yet, early at boot, from what the kernel gave this
// process when it started and from the clock.
uintptr_t random_word();

}  // namespace annex::os
