// The steps of malloc with markers for Mallacc (mallacc_markers.h), in the place of those that a flavour has
// (policy/malloc_steps.h): the same, but that the next block is fetched ahead by Mallacc's instruction alone.
//
// What free() gives back goes to its slab's list and not to the one that malloc pops, so there is nothing to push.
#pragma once

#include <cstddef>
#include <cstdint>

#include "experiments/mallacc_markers.h"

namespace annex::experiments {

struct MarkedMallocSteps {
  static constexpr bool kTinyOnly = true;
  template <class Find>
  [[gnu::always_inline]] static uint32_t size_class(size_t bytes, Find find) {
    MALLACC_SIZE_BEGIN(bytes);
    uint32_t c = find(bytes);
    MALLACC_SIZE_ALONE(c);
    return c;
  }

  template <class Block, class Next>
  [[gnu::always_inline]] static Block* pop(uint32_t c, Block** list, Next next_of) {
    MALLACC_BEFORE(list);
    MALLACC_POP_BEGIN(c);
    Block* block = *list;
    if (block == nullptr) [[unlikely]] {
      MALLACC_POP_LEFT();
      return nullptr;
    }
    Block* next = next_of(block);
    MALLACC_POP_END(block, next);
    *list = next;
    MALLACC_PREFETCH(c, next);
    return block;
  }

  [[gnu::always_inline]] static void drop(uint32_t c) { MALLACC_DROP(c); }
};

}  // namespace annex::experiments
