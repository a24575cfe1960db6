// An error that every flavour finds.
#pragma once

#include <cstdlib>

#include "common/opaque.h"

namespace annex_test {

inline void free_twice(std::size_t bytes = 40) {
  void* block = opaque(malloc(bytes));
  free(block);
  free(opaque(block));
}

}  // namespace annex_test
