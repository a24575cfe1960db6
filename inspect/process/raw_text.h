// What is known of a process's heap and profile, as the text of a raw file (src/observe/profile_file.h).
#pragma once

#include <string>

#include "process/target.h"

namespace annex::inspect {

std::string raw_text(const Target& target);

}  // namespace annex::inspect
