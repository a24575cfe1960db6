// The words of a free block in the hardened build: where the list goes on is encoded, and the second word vouches for
// it.
//
//   seal   = (address + s0) * s1             s0, s1, s2: by chance, of this process
//   word 0 = where the list goes on ^ seal
//   word 1 = ((where ^ rotated seal) * s2) + seal
//
// So no address stands in a free block, and a word that was changed, or copied from another block, is noticed when the
// list is followed: the odds of it being right are 2^-64. The process ends with one line.
//
// In a live block both words are the program's; it reads as free with the same odds.
#pragma once

#include <bit>
#include <cstdint>

#include "core/die.h"
#include "core/slab_record.h"
#include "pages/secret.h"

namespace annex {

struct SealedWords {
  static uint64_t word(const Block* block) { return word(block, *block); }
  // The same of a block's words as they were a moment ago.
  static uint64_t word(const Block* block, const Block& words) {
    const uint64_t seal = seal_of(block);
    const uint64_t word = reinterpret_cast<uintptr_t>(words.next) ^ seal;
    if (words.mark != voucher(word, seal)) [[unlikely]]
      die_at(kWrittenAfterFree, block);
    return word;
  }
  static void set_word(Block* block, uint64_t word) {
    const uint64_t seal = seal_of(block);
    block->next = reinterpret_cast<Block*>(word ^ seal);
    block->mark = voucher(word, seal);
  }
  static void mark(uint64_t, Block*) {}  // set_word has
  static bool is_marked(uint64_t, const Block* block) {
    const uint64_t seal = seal_of(block);
    return block->mark == voucher(reinterpret_cast<uintptr_t>(block->next) ^ seal, seal);
  }
  static void clear(Block* block) {
    block->next = nullptr;
    block->mark = 0;
  }

  static uint64_t seal_of(const Block* block) {
    return (reinterpret_cast<uintptr_t>(block) + secret.addend) * secret.factor;
  }

 private:
  static uint64_t voucher(uint64_t word, uint64_t seal) {
    return (word ^ std::rotl(seal, 29)) * secret.second_factor + seal;
  }
};

}  // namespace annex
