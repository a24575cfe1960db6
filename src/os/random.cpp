// Random words: see random.h.
#include "os/random.h"

#include <sys/auxv.h>
#include <sys/random.h>

#include <cstring>
#include <ctime>

#include "os/system_call.h"

namespace annex::os {

namespace {

// Every bit of the result depends on every bit of the input (the finalizer of MurmurHash3), so that what is derived
// from the process's random bytes, which are also its stack protector's, does not tell them.
uint64_t mixed(uint64_t word) {
  word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
  return word ^ word >> 33;
}

}  // namespace

uintptr_t random_word() {
  uint64_t word = 0;
  if (system_call(SYS_getrandom, reinterpret_cast<long>(&word), sizeof word, GRND_NONBLOCK) == sizeof word) return word;
  uint64_t at_start[2] = {};
  if (const unsigned long bytes = getauxval(AT_RANDOM))
    memcpy(at_start, reinterpret_cast<void*>(bytes), sizeof at_start);
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return mixed(mixed(at_start[0]) ^ mixed(at_start[1] + static_cast<uint64_t>(now.tv_nsec)));
}

}  // namespace annex::os
