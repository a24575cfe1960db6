// Clocks, read by the vDSO, the library that the kernel maps into each process. Not by clock_gettime: other libraries
// interpose it (to shift time, to trace) and may allocate in it, and most clocks are read with a lock held.
#pragma once

#include <cstdint>
#include <ctime>

namespace annex::os {

// False where there is no such clock.
bool read_clock(clockid_t clock, struct timespec* time);

inline uint64_t read_ms(clockid_t clock) {
  struct timespec time = {};
  read_clock(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

// Milliseconds of the monotonic clock, for decisions about memory that lies unused. Coarse, which is a few milliseconds
// off and never a system call.
inline uint64_t now_ms() { return read_ms(CLOCK_MONOTONIC_COARSE); }
// The same since 1970.
inline uint64_t unix_ms() { return read_ms(CLOCK_REALTIME_COARSE); }

}  // namespace annex::os
