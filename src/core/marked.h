// The fast path of allocation with markers for Mallacc's steps (os/mallacc_markers.h), for builds with ANNEX_MARKED:
// the same as the flavours' own, which it stands in for, so that theirs are as they are; but that it fetches the next
// block ahead by Mallacc's instruction alone.
//
// What free() gives back goes to its slab's list and not to this one, so there is nothing to push.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "core/size_class.h"
#include "os/mallacc_markers.h"

namespace annex {

// `lists` by class; `bytes` is no more than kTableMax.
template <void* slow(size_t)>
[[gnu::always_inline]] inline void* allocate_marked(Block** lists, size_t bytes) {
  MALLACC_SIZE_BEGIN(bytes);
  uint32_t c = class_of_tiny(bytes);
  MALLACC_SIZE_ALONE(c);
  Block** list = &lists[c];
  MALLACC_BEFORE(list);
  MALLACC_POP_BEGIN(c);
  Block* block = *list;
  if (block == nullptr) [[unlikely]] {
    MALLACC_POP_LEFT();
    return slow(bytes);
  }
  Block* next = next_of(block);
  MALLACC_POP_END(block, next);
  *list = next;
  MALLACC_PREFETCH(c, next);
  return unmarked(block);
}

}  // namespace annex
