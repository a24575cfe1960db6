// Clocks, taken from the kernel's own library (the vDSO): clock_gettime is a name before which others stand (shifted
// time, tracers) and may allocate, and most of this is asked for under a lock.
#pragma once

#include <cstdint>
#include <ctime>

namespace annex::os {

// False where there is no such clock.
bool read_clock(clockid_t clock, struct timespec* time);

// Coarse time, for decisions about memory that lies unused: milliseconds of the monotonic clock. A few of error are
// fine, a system call is not.
inline uint64_t now_ms() {
  struct timespec time = {};
  read_clock(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

}  // namespace annex::os
