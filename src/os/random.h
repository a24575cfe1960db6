// A word that nobody can guess.
#pragma once

#include <cstdint>

namespace annex::os {

// From the kernel's random numbers; where those are not to be had yet, early at boot, from what the kernel gave this
// process when it started and from the clock.
uint64_t random_word();

// A function of the word, each bit of which depends on each bit of the word (the finalizer of MurmurHash3).
constexpr uint64_t mixed(uint64_t word) {
  word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
  return word ^ word >> 33;
}

}  // namespace annex::os
