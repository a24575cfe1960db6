// Sites: the call stacks at which samples were allocated, each once for each set of labels.
#pragma once

#include <cstdint>

#include "profile/tables.h"

namespace annex::profile {

// The calling thread's stack, as the library's callers see it.
struct Stack {
  uint32_t depth = 0;
  uintptr_t frames[kMaxFrames];
  uint16_t modules[kMaxFrames];

  // With no lock held: another library may be called.
  void capture();
  // One more, further out.
  void add(const void* return_address);
};

// With profile::lock held: the site of a stack under a set of labels; nullptr where memory is exhausted.
Site* site_of(const Stack& stack, uint32_t labels);

}  // namespace annex::profile
