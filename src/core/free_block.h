// Free blocks: each leads to the next one of its list, and says that it is free. Whatever touches their words does it
// through these functions. How the words are written is the policy's choice: plainly (plain_words.h), or so that
// a change to them is noticed (sealed_words.h).
//
// Synchronization: a free block belongs to whoever holds its list.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/plain_words.h"
#include "core/sealed_words.h"
#include "core/slab_record.h"
#include "policy/policy.h"

namespace annex {

using FreeWords = Policy::FreeWords;

// What the first block of a list leads to: another block, or what a message says (remote/message.h).
inline uint64_t word_of(const Block* block) { return FreeWords::word(block); }
inline void set_word(Block* block, uint64_t word) { FreeWords::set_word(block, word); }
inline Block* next_of(const Block* block) { return reinterpret_cast<Block*>(word_of(block)); }
// Of its words as they were a moment ago.
inline Block* next_in(const Block* block, const Block& words) {
  return reinterpret_cast<Block*>(FreeWords::word(block, words));
}
inline void set_next(Block* block, Block* next) { set_word(block, reinterpret_cast<uintptr_t>(next)); }

// `key` is its slab's.
inline void mark_free(uint64_t key, void* block) { FreeWords::mark(key, static_cast<Block*>(block)); }
inline bool is_marked(uint64_t key, const void* block) {
  return FreeWords::is_marked(key, static_cast<const Block*>(block));
}

// For the program: a block is no longer free. First its list goes on without it (core/holes.h).
inline void* unmarked(void* block) {
  std::atomic_signal_fence(std::memory_order_release);
  FreeWords::clear(static_cast<Block*>(block));
  return block;
}
// Takes the first block out of a list that is not empty. The next one's link may lie in the caches of another core,
// which has freed it: fetching it begins now, and not when the program asks for that block (docs/many-cores.md).
inline void* pop(Block** list) {
  Block* block = *list;
  *list = next_of(block);
  __builtin_prefetch(*list);
  return unmarked(block);
}

}  // namespace annex
