// A handful: up to 64 free blocks of one slab, as a word of its bitmap. The unit in which blocks leave the heap: 16
// bytes that say where 64 blocks are, so that the support core's work and the lines between the cores do not grow with
// their number. The program thread that takes it spreads it out into its magazine.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/size_class.h"

namespace annex::support {

struct Handful {
  char* first = nullptr;  // the block of bit 0
  uint64_t mask = 0;      // 0: none, memory is exhausted

  uint32_t count() const { return static_cast<uint32_t>(std::popcount(mask)); }
};

// How many blocks make a handful: as many as make 8 KiB, at least one.
inline constexpr uint32_t kLargestHandful = 64;
constexpr uint32_t handful_of(SizeClass c) {
  return std::clamp(static_cast<uint32_t>(8192 / block_size(c)), 1u, kLargestHandful);
}

// Writes the blocks' addresses, the lowest last; returns how many there are.
inline uint32_t spread(const Handful& handful, SizeClass c, void** out) {
  if (handful.mask == 0) return 0;
  const size_t size = block_size(c);
  const int lowest = std::countr_zero(handful.mask);
  const uint64_t mask = handful.mask >> lowest;
  char* const first = handful.first + static_cast<unsigned>(lowest) * size;
  if ((mask & (mask + 1)) == 0) {  // side by side, as fresh blocks are
    const uint32_t count = static_cast<uint32_t>(std::countr_one(mask));
    char* block = first + count * size;
    for (uint32_t i = 0; i < count; ++i) out[i] = block -= size;
    return count;
  }
  uint32_t count = 0;
  for (uint64_t left = mask; left != 0;) {
    const unsigned highest = 63 - static_cast<unsigned>(std::countl_zero(left));
    out[count++] = first + highest * size;
    left &= ~(uint64_t{1} << highest);
  }
  return count;
}

}  // namespace annex::support
