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

// How many blocks make a handful: as many as make 16 KiB, at least one.
inline constexpr uint32_t kLargestHandful = 64;
constexpr uint32_t handful_of(SizeClass c) {
  return std::clamp(static_cast<uint32_t>(16384 / block_size(c)), 1u, kLargestHandful);
}

// Writes the blocks' addresses, the lowest last; returns how many there are.
inline uint32_t spread(const Handful& handful, SizeClass c, void** out) {
  const size_t size = block_size(c);
  uint32_t count = 0;
  if (handful.mask == ~uint64_t{0}) {
    for (char* block = handful.first + 63 * size; count < 64; block -= size) out[count++] = block;
    return count;
  }
  for (uint64_t mask = handful.mask; mask != 0;) {
    const unsigned highest = 63 - static_cast<unsigned>(std::countl_zero(mask));
    out[count++] = handful.first + highest * size;
    mask &= ~(uint64_t{1} << highest);
  }
  return count;
}

}  // namespace annex::support
