// What a thread may do and which namespaces it sees, in a form that can be compared with another thread's.
//
// The kernel keeps all of it for each thread. setuid and its like act on the whole process only because libc makes the
// system call in each thread that it knows of.
#pragma once

#include <cstdint>

namespace annex::os {

struct Privileges {
  bool known = false;    // the thread has not ended
  uint64_t filters = 0;  // seccomp
  uint64_t rest = 0;     // user, groups, capabilities, no_new_privs, namespaces

  bool operator==(const Privileges&) const = default;
};

// Those of a thread of this process, hashed from what /proc says: some 40 us. Where there is no /proc, all threads' are
// equal.
Privileges privileges_of(long thread);

}  // namespace annex::os
