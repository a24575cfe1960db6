// A message: a chain of blocks of one slab, on its way to the heap that owns the slab (BatchIt, section 3).
//
// The chain's last block carries it, so that its owner, in whose caches none of the blocks is, touches that one alone
// to put all of them back. Of the carrier's first word, which else would link it to a block behind it:
//
//   word = blocks - 1 << 57 | first << 43 | next     first: the first block's distance from the slab's start / 16 bytes
//                                                    next:  the address of the next message's carrier / 16 bytes, or 0
//
// The second word stays the carrier's mark (core/mark.h). A program that writes to a block which it has freed may
// destroy a message: what it leads to is checked before it is believed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "core/slab_record.h"
#include "remote/steps.h"

namespace annex::remote {

inline constexpr int kAddressBits = 43;  // 47 of a program's, of which four are 0
inline constexpr int kFirstBits = 14;
inline constexpr uint32_t kMostBlocks = 1u << (64 - kAddressBits - kFirstBits);
static_assert(kLongestSlab / kMinAlignment <= size_t{1} << kFirstBits);

// Messages for one heap, linked from first to last.
struct Messages {
  Block* first = nullptr;
  Block* last = nullptr;
  uint32_t count = 0;
};

constexpr uint64_t address_bits(uintptr_t address) { return address / kMinAlignment; }
constexpr uintptr_t address_in(uint64_t word) { return (word & ((uint64_t{1} << kAddressBits) - 1)) * kMinAlignment; }

// Makes a message of a chain of at most kMostBlocks blocks; `next` is the carrier of the one behind it, or nullptr.
inline Block* make_message(const Chain& chain, const char* slab_start, Block* next) {
  const uint64_t first = static_cast<uint64_t>(reinterpret_cast<const char*>(chain.first) - slab_start) / kMinAlignment;
  set_word(chain.last, uint64_t{chain.count - 1} << (kAddressBits + kFirstBits) | first << kAddressBits |
                           address_bits(reinterpret_cast<uintptr_t>(next)));
  return chain.last;
}

inline Block* next_message(Block* carrier) { return reinterpret_cast<Block*>(address_in(word_of(carrier))); }

inline Chain chain_of(Block* carrier, char* slab_start) {
  const uint64_t word = word_of(carrier);
  const uint64_t first = word >> kAddressBits & ((uint64_t{1} << kFirstBits) - 1);
  return {reinterpret_cast<Block*>(slab_start + first * kMinAlignment), carrier,
          static_cast<uint32_t>(word >> (kAddressBits + kFirstBits)) + 1};
}

}  // namespace annex::remote
