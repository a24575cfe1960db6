// The fast path of allocation, for flavours whose free blocks are linked: the first block of the class's list.
//
// Small requests look their class up, the larger ones compute it: each a way of its own to the end, so that neither
// waits for the other.
#pragma once

#include <cstddef>

#include "core/free_block.h"
#include "core/size_class.h"
#include "policy/policy.h"

namespace annex {

// `lists` by class. slow(bytes) where the class's list is empty, or there is no class.
template <void* slow(size_t)>
[[gnu::always_inline]] inline void* allocate_from(Block* (&lists)[kClasses], size_t bytes) {
  using Steps = Policy::MallocSteps;
  if (bytes <= kTableMax) [[likely]] {
    const auto c = Steps::size_class(bytes, class_of_tiny);
    Block* const block = Steps::pop(c, &lists[c], next_of);
    if (block == nullptr) [[unlikely]]
      return slow(bytes);
    return unmarked(block);
  }
  if (bytes <= kMaxSmall && !Steps::kTinyOnly) {
    const SizeClass c = class_by_bits(bytes);
    if (lists[c] != nullptr) return pop(&lists[c]);
  }
  return slow(bytes);
}

}  // namespace annex
