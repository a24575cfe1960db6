// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace annex::inspect {

// "12.34 MiB", or "1.20 GiB" from there on.
std::string in_units(uint64_t bytes);
// The same with a sign.
std::string change_in_units(double bytes);

}  // namespace annex::inspect
