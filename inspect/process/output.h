// Standard output, checked.
#pragma once

#include <string_view>

namespace annex::inspect {

// Writes all of it at once. Throws Failure where that fails.
void write_out(std::string_view text);

}  // namespace annex::inspect
