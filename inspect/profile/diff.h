// What changed between two profiles, by call stack.
#pragma once

#include <string>

#include "profile/profile.h"

namespace annex::inspect {

// As text: what grew most first, what shrank at the end; `most` of each. Call stacks are the same where their functions
// and files are, wherever the modules lay and whichever lines they were.
std::string diff_text(const Profile& before, const Profile& after, size_t most);

}  // namespace annex::inspect
