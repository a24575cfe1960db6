// Coarse time, for decisions about memory that lies unused: a few milliseconds of error are fine, a system call is not.
#pragma once

#include <cstdint>
#include <ctime>

namespace annex::os {

// Milliseconds of the monotonic clock.
inline uint64_t now_ms() {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

}  // namespace annex::os
