// How much memory this process has resident, read without allocating.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace annex_test {

// Field `index` of /proc/self/statm in bytes: 0 is the address space, 1 the resident set.
inline std::size_t statm_bytes(int index) {
  char text[256];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* at = text;
  for (; index > 0; --index) {
    while (*at != 0 && *at != ' ') ++at;
    while (*at == ' ') ++at;
  }
  std::size_t pages = 0;
  for (; *at >= '0' && *at <= '9'; ++at) pages = pages * 10 + static_cast<std::size_t>(*at - '0');
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

inline std::size_t address_space_bytes() { return statm_bytes(0); }
inline std::size_t resident_bytes() { return statm_bytes(1); }

// Whether the page of an address is in memory.
inline bool is_resident(const void* address) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  unsigned char state = 0;
  void* const start = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(page - 1));
  return mincore(start, page, &state) == 0 && (state & 1) != 0;
}

}  // namespace annex_test
