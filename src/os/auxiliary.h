// What the kernel told the process at its start (getauxval). Asked once and outside of every lock, as whoever stands
// before getauxval may allocate.
#pragma once

#include <cstdint>

namespace annex::os {

struct Auxiliary {
  uintptr_t page_size = 0;
  uintptr_t random_bytes = 0;  // where 16 of them are
  uintptr_t vdso = 0;          // the kernel's own library, for clocks
  bool secure = false;         // the process has gained rights by starting
  bool asked = false;
};

// The first call asks: with no lock held.
const Auxiliary& auxiliary();

}  // namespace annex::os
