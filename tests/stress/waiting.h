// Waiting until memory has gone back. Nothing here allocates or calls Annex.
//
// With a long deadline and no lower bound: it says whether, not when.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdio>

#include "common/resident.h"

namespace annex_test {

inline void wait_50_ms() {
  const timespec step{0, 50'000'000};
  nanosleep(&step, nullptr);
}

// 10 s in steps of 50 ms.
inline bool falls_below(std::size_t bytes) {
  for (int i = 0; i < 200; ++i) {
    if (resident_bytes() < bytes) return true;
    wait_50_ms();
  }
  fprintf(stderr, "resident %zu, wanted below %zu\n", resident_bytes(), bytes);
  return false;
}

}  // namespace annex_test
