// A batch: free blocks of one slab, as a word of its bitmap and a number of blocks that follow it. It is the unit in
// which blocks leave the heap: it says where up to thousands of fresh blocks are, so that neither the support core's
// work nor the cache lines that move between cores grow with their number. The program thread that takes it turns it
// into the blocks' addresses in its magazine, a part at a time, so that no call of malloc takes long.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/size_class.h"

namespace annex::support {

// How many blocks a batch has where no more are needed: 8 KiB of them, at least one.
inline constexpr uint32_t kWord = 64;
constexpr uint32_t batch_of(SizeClass c) { return std::clamp(static_cast<uint32_t>(8192 / block_size(c)), 1u, kWord); }

// How many blocks a part has at most, and for each class that many bits, the lowest of a word.
inline constexpr uint32_t kLargestPart = 32;
inline constexpr auto kPart = [] {
  std::array<uint32_t, kClasses> part{};
  for (SizeClass c = 0; c < kClasses; ++c) part[c] = 0xffffffff >> (32 - std::min(batch_of(c), kLargestPart));
  return part;
}();

struct Batch {
  char* first = nullptr;  // the block of bit 0
  uint64_t mask = 0;      // which of 64 blocks; 0: the batch is empty, memory is exhausted
  uint32_t more = 0;      // consecutive blocks from where bit 64 would be

  uint32_t count() const { return static_cast<uint32_t>(std::popcount(mask)) + more; }

  // Takes a part out, the lowest blocks. The batch is not empty. In the result, `more` is 0.
  Batch split(SizeClass c) {
    const Batch part = {first, mask & (uint64_t{kPart[c]} << std::countr_zero(mask))};
    mask &= ~part.mask;
    if (mask == 0 && more > 0) {
      const uint32_t count = std::min(more, kWord);
      first += kWord * block_size(c);
      mask = ~uint64_t{0} >> (kWord - count);
      more -= count;
    }
    return part;
  }
};

// Writes the addresses of a part's blocks, the lowest last, and calls visit(block) for each; how many there are.
template <class Visit>
[[gnu::always_inline]] inline uint32_t spread(const Batch& part, SizeClass c, void** out, Visit visit) {
  if (part.mask == 0) return 0;
  const size_t size = block_size(c);
  const int lowest = std::countr_zero(part.mask);
  const uint64_t mask = part.mask >> lowest;
  char* const first = part.first + static_cast<unsigned>(lowest) * size;
  if ((mask & (mask + 1)) == 0) {  // consecutive, as fresh blocks are
    const uint32_t count = static_cast<uint32_t>(std::countr_one(mask));
    char* block = first + count * size;
    for (uint32_t i = 0; i < count; ++i) visit(out[i] = block -= size);
    return count;
  }
  uint32_t count = 0;
  for (uint64_t left = mask; left != 0;) {
    const unsigned highest = 63 - static_cast<unsigned>(std::countl_zero(left));
    visit(out[count++] = first + highest * size);
    left &= ~(uint64_t{1} << highest);
  }
  return count;
}

inline uint32_t spread(const Batch& part, SizeClass c, void** out) {
  return spread(part, c, out, [](void*) {});
}

}  // namespace annex::support
