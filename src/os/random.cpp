// Random words: see random.h.
#include "os/random.h"

#include <sys/random.h>

#include <cstring>

#include "os/auxiliary.h"
#include "os/clock.h"
#include "os/system_call.h"

namespace annex::os {

uint64_t random_word() {
  uint64_t word = 0;
  if (system_call(SYS_getrandom, reinterpret_cast<long>(&word), sizeof word, GRND_NONBLOCK) == sizeof word) return word;
  uint64_t at_start[2] = {};
  if (const uintptr_t bytes = auxiliary().random_bytes) {
    memcpy(at_start, reinterpret_cast<void*>(bytes), sizeof at_start);
  }
  struct timespec now = {};
  read_clock(CLOCK_MONOTONIC, &now);
  // Mixed, so that the result does not reveal this process's stack canary, which is made of the same bytes.
  return mixed(mixed(at_start[0]) ^ mixed(at_start[1] + static_cast<uint64_t>(now.tv_nsec)));
}

}  // namespace annex::os
