// The auxiliary vector: what the kernel told the process at its start. Read once and with no lock held, since a library
// that interposes getauxval may allocate in it.
#pragma once

#include <atomic>
#include <cstdint>

namespace annex::os {

// Atomic, as several threads may make the first call at once: each writes the same.
struct Auxiliary {
  std::atomic<uintptr_t> page_size = 0;
  std::atomic<uintptr_t> random_bytes = 0;  // where 16 of them are
  std::atomic<uintptr_t> vdso = 0;          // the kernel's own library, for clocks
  std::atomic<bool> secure = false;         // the process has gained rights by starting
  std::atomic<bool> is_read = false;
};

// The first call reads it: with no lock held.
const Auxiliary& auxiliary();

}  // namespace annex::os
