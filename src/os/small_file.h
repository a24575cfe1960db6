// Small files of the system, by system calls alone.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>

#include "os/system_call.h"

namespace annex::os {

// The start of a file as text: its length, or < 0, an error (-ENOENT) with an empty text, where it can't be read.
template <size_t kSize>
long read_start(const char* path, char (&buffer)[kSize]) {
  const long file = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  long length = file;
  if (file >= 0) {
    length = system_call(SYS_read, file, reinterpret_cast<long>(buffer), kSize - 1);
    system_call(SYS_close, file);
  }
  buffer[std::max(length, 0L)] = '\0';
  return length;
}

// The same; an empty text where it can't be read.
template <size_t kSize>
const char* read_file(const char* path, char (&buffer)[kSize]) {
  read_start(path, buffer);
  return buffer;
}

}  // namespace annex::os
