// Hides values from the optimiser, so that a test's allocation calls are neither removed nor
// reasoned about.
#pragma once

#include <cstddef>

namespace annex_test {

inline void* opaque(void* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

inline std::size_t opaque(std::size_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace annex_test
