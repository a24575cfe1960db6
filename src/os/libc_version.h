// Which C library the process runs on, for what differs between its releases.
//
// Synchronization: none needed; but the name is libc's, before which others may stand: not with a lock held.
#pragma once

#if __has_include(<gnu/libc-version.h>)
#include <gnu/libc-version.h>
#endif

namespace annex::os {

// 36 of glibc 2.36; 0 of any other C library, and of a glibc that is no 2.
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
