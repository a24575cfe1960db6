// The steps of malloc that hardware may do in the processor's place (Mallacc): each is a function, so that an
// experiment can mark for the simulator where it begins and ends (experiments/marked.h). Here they are no more than
// what they do.
#pragma once

#include <cstddef>

namespace annex {

struct PlainMallocSteps {
  static constexpr bool kTinyOnly = false;
  // The size class, which find() says.
  template <class Find>
  [[gnu::always_inline]] static auto size_class(size_t bytes, Find find) {
    return find(bytes);
  }

  // The first block of the class's list, taken out; nullptr where there is none. The next one, which next() says,
  // begins to be fetched: its link may lie in the caches of another core (core/free_block.h: pop).
  template <class SizeClass, class Block, class Next>
  [[gnu::always_inline]] static Block* pop(SizeClass, Block** list, Next next) {
    Block* const block = *list;
    if (block != nullptr) [[likely]] {
      *list = next(block);
      __builtin_prefetch(*list);
    }
    return block;
  }

  // The class's list is about to change otherwise.
  template <class SizeClass>
  static void drop(SizeClass) {}
};

}  // namespace annex
