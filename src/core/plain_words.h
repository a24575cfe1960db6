// The words of a free block as most builds have them: where the list goes on, as it is, and the mark (core/mark.h).
#pragma once

#include <cstdint>

#include "core/mark.h"
#include "core/slab_record.h"

namespace annex {

struct PlainWords {
  static uint64_t word(const Block* block) { return reinterpret_cast<uintptr_t>(block->next); }
  // The same of a block's words as they were a moment ago.
  static uint64_t word(const Block*, const Block& words) { return word(&words); }
  static void set_word(Block* block, uint64_t word) { block->next = reinterpret_cast<Block*>(word); }
  static void mark(uint64_t key, Block* block) { block->mark = mark_of(key, block); }
  static bool is_marked(uint64_t key, const Block* block) { return block->mark == mark_of(key, block); }
  static void clear(Block* block) { block->mark = 0; }
};

}  // namespace annex
