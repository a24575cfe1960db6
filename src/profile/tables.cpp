// The tables of a heap profile: see tables.h.
#include "profile/tables.h"

namespace annex::profile {

constinit Tables tables = {};
constinit os::Lock lock;

}  // namespace annex::profile
