// Which C library the process runs on, for what differs between its releases.
//
// Synchronization: none needed; but no lock may be held, since other libraries may interpose libc's function.
#pragma once

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

namespace annex::os {

// 36 for glibc 2.36; 0 for any other C library, and for a glibc whose major version is not 2.
inline unsigned glibc_minor() {
#ifdef __GLIBC__
  const char* version = gnu_get_libc_version();
  if (version[0] != '2' || version[1] != '.') return 0;
  unsigned minor = 0;
  for (version += 2; *version >= '0' && *version <= '9'; ++version) {
    minor = minor * 10 + static_cast<unsigned>(*version - '0');
  }
  return minor;
#else
  return 0;
#endif
}

}  // namespace annex::os
