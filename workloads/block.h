// Blocks that know what they should hold: a header with size and tag, and the tag again in the last bytes. A block that
// was handed out twice, or whose content was overwritten, is found when it is released.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "workload.h"

namespace workload {

struct Block {
  uint32_t size;  // bytes in all, this header included
  uint32_t tag;
};

inline uint32_t* block_tail(Block* block) {
  return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(block) + (block->size / 4) * 4 - 4);
}

// A block of at least `size` bytes (16 at the least); its first and last bytes are written, as a program would.
inline Block* new_block(uint32_t size, uint32_t tag) {
  if (size < 16) size = 16;
  auto* block = static_cast<Block*>(malloc(size));
  require(block != nullptr, "malloc returned null");
  block->size = size;
  block->tag = tag;
  *block_tail(block) = ~tag;
  return block;
}

// Checks and frees; returns the size, for a checksum.
inline uint32_t free_block(Block* block) {
  require(*block_tail(block) == ~block->tag, "a block's content changed");
  const uint32_t size = block->size;
  free(block);
  return size;
}

// Clears a block and then adds one to each of its bytes, over and over: what false sharing slows down.
inline void write_over(volatile char* block, uint32_t size, uint32_t writes) {
  for (uint32_t i = 0; i < size; ++i) block[i] = 0;
  for (uint32_t w = 0; w < writes; ++w) {
    for (uint32_t i = 0; i < size; ++i) block[i] = static_cast<char>(block[i] + 1);
  }
}

}  // namespace workload
