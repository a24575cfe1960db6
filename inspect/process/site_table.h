// The table of annex top by call site, of a profile that is on in the process.
#pragma once

#include <map>

#include "process/profile_copy.h"
#include "process/tables.h"

namespace annex::inspect {

using LiveBySite = std::map<uint32_t, double>;  // estimated bytes in use, by the site's number

LiveBySite live_by_site(const ProfileCopy& profile);

// `before`: as it was when `change` began.
Table site_table(const ProfileCopy& profile, const LiveBySite& live, const LiveBySite& before, const Change& change);

}  // namespace annex::inspect
