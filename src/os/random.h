// Random numbers.
#pragma once

#include <cstdint>

namespace annex::os {

// 64 bits that nobody can guess: the kernel's. Where the kernel has none yet, early at boot, they are made of the 16
// random bytes that it gave this process at its start, and of the clock.
uint64_t random_word();

// A function of the word, each bit of which depends on each bit of the word (the finalizer of MurmurHash3).
constexpr uint64_t mixed(uint64_t word) {
  word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
  return word ^ word >> 33;
}

}  // namespace annex::os
