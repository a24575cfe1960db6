// What the kernel told the process at its start (getauxval). Asked once and outside of every lock, as whoever stands
// before getauxval may allocate.
#pragma once

#include <atomic>
#include <cstdint>

namespace annex::os {

// Atomic, as the first threads may ask at once: each writes the same.
struct Auxiliary {
  std::atomic<uintptr_t> page_size = 0;
  std::atomic<uintptr_t> random_bytes = 0;  // where 16 of them are
  std::atomic<uintptr_t> vdso = 0;          // the kernel's own library, for clocks
  std::atomic<bool> secure = false;         // the process has gained rights by starting
  std::atomic<bool> asked = false;
};

// The first call asks: with no lock held.
const Auxiliary& auxiliary();

}  // namespace annex::os
