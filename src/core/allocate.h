// The fast path of allocation, for flavours whose free blocks are linked: the first block of the class's list.
//
// Small requests look their class up, the larger ones compute it: each a way of its own to the end, so that neither
// waits for the other.
#pragma once

#include <cstddef>

#include "core/free_block.h"
#include "core/size_class.h"
#ifdef ANNEX_MARKED
#include "core/marked.h"
#endif

namespace annex {

// `lists` by class. slow(bytes) where the class's list is empty, or there is no class.
template <void* slow(size_t)>
[[gnu::always_inline]] inline void* allocate_from(Block* (&lists)[kClasses], size_t bytes) {
#ifdef ANNEX_MARKED
  return bytes <= kTableMax ? allocate_marked<slow>(lists, bytes) : slow(bytes);
#endif
  if (bytes <= kTableMax) [[likely]] {
    const SizeClass c = class_of_tiny(bytes);
    Block* block = lists[c];
    if (block == nullptr) [[unlikely]]
      return slow(bytes);
    lists[c] = next_of(block);
    __builtin_prefetch(lists[c]);  // as pop() does
    return unmarked(block);
  }
  if (bytes <= kMaxSmall) {
    const SizeClass c = class_by_bits(bytes);
    if (lists[c] != nullptr) return pop(&lists[c]);
  }
  return slow(bytes);
}

}  // namespace annex
