// Which program or library an address of code belongs to, as it is at this moment: what is unloaded later stays known.
//
// Synchronization: any thread, with no lock held.
#pragma once

#include <cstdint>

#include "profile/tables.h"

namespace annex::profile {

// The number of the module in which an address lies; 0: none, or there is no memory for one more.
uint16_t module_of(uintptr_t address);

}  // namespace annex::profile
