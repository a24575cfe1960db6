// A profile as text tables.
#pragma once

#include <string>

#include "profile/profile.h"

namespace annex::inspect {

std::string summary(const Profile& profile);
// The call sites that have most of a value: with "" where none has any.
std::string top_sites(const Profile& profile, Value by, size_t most);
std::string class_table(const Profile& profile);
std::string pin_table(const Profile& profile, size_t most);

}  // namespace annex::inspect
