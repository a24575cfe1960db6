// What the sampled blocks in use say of the heap: live values of the sites, which pages they keep, size classes.
#pragma once

#include "profile/profile.h"

namespace annex::inspect {

// Fills the live values of the sites, classes and heap. docs/profiling-formats.md has the formulas.
void add_live_blocks(Profile* profile);

}  // namespace annex::inspect
