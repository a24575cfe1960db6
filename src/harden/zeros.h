// Blocks that must be all zeros: clearing them, and checking whether they still are. For up to a few hundred bytes, for
// which a call of memset would take longer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"

namespace annex::harden {

namespace zeros {

typedef uint64_t Words __attribute__((vector_size(16), may_alias));

[[gnu::always_inline]] inline const Words& at(const void* block, size_t offset) {
  return *reinterpret_cast<const Words*>(static_cast<const char*>(block) + offset);
}
[[gnu::always_inline]] inline Words& at(void* block, size_t offset) {
  return *reinterpret_cast<Words*>(static_cast<char*>(block) + offset);
}
[[gnu::always_inline]] inline bool none(Words words) { return (words[0] | words[1]) == 0; }

}  // namespace zeros

// `bytes`, a multiple of 16 and not 0, from `block` on. 32 bytes at a time; the last 16 may be read twice.
[[gnu::always_inline]] inline bool is_zero(const void* block, size_t bytes) {
  zeros::Words any = zeros::at(block, bytes - 16);
  for (size_t offset = 0; offset + 16 < bytes; offset += 32) {
    any |= zeros::at(block, offset) | zeros::at(block, offset + 16);
  }
  return zeros::none(any);
}

// All of a block of so many bytes but its first 16: those have just been checked and cleared, and reading them now
// would wait for those stores.
[[gnu::always_inline]] inline bool is_zero_behind_first(const void* block, size_t bytes) {
  return bytes == sizeof(Block) || is_zero(static_cast<const Block*>(block) + 1, bytes - sizeof(Block));
}

[[gnu::always_inline]] inline void set_zero(void* block, size_t bytes) {
  zeros::at(block, bytes - 16) = zeros::Words{};
  for (size_t offset = 0; offset + 16 < bytes; offset += 32) {
    zeros::at(block, offset) = zeros::Words{};
    zeros::at(block, offset + 16) = zeros::Words{};
    asm("" : "+r"(offset));  // else a compiler makes the loop a `rep stos`, which is slow to start
  }
}

}  // namespace annex::harden
