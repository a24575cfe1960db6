// The mark of a free block, in its second word: by it free() sees that a block is freed twice, or was never allocated,
// whatever list the block is on and whichever thread put it there.
//
//   mark = key ^ address      the key is random, one for each process
//
// A block is marked when it is made and when it is freed, and malloc clears the word. So a program can have the mark in
// a live block only if it guesses the key, or copies the word from where it lay while the block was free, to the same
// address: a false alarm has odds of 2^-64. What overwrites a block after it is freed destroys its mark.
#pragma once

#include <cstdint>

#include "core/arena.h"
#include "core/granule.h"

namespace annex {

inline uintptr_t mark_with(uintptr_t key, const void* block) { return key ^ reinterpret_cast<uintptr_t>(block); }
inline uintptr_t mark_of(const void* block) { return mark_with(primary.key, block); }

inline void mark_free(void* block) { static_cast<Block*>(block)->mark = mark_of(block); }
inline bool is_marked(const void* block) { return static_cast<const Block*>(block)->mark == mark_of(block); }

// Takes the first block out of a list that is not empty, for the program.
inline Block* pop(Block** list) {
  Block* block = *list;
  *list = block->next;
  block->mark = 0;
  return block;
}

}  // namespace annex
