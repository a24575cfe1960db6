// What those of Mallacc's microbenchmarks that go through fixed sizes share: pairs of malloc and free, one after the
// other, so that an allocator's fast path is all that runs.

#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include "workload.h"

namespace workload {

// The sum that rounds 0 .. rounds - 1 must give where round r adds (r mod 65536) + size for every size.
inline uint64_t stride_sum(std::span<const uint32_t> sizes, uint64_t rounds) {
  const uint64_t whole = rounds / 65536;
  const uint64_t rest = rounds % 65536;
  uint64_t of_sizes = 0;
  for (const uint32_t size : sizes) of_sizes += size;
  return rounds * of_sizes + sizes.size() * (whole * (65536u * 65535u / 2) + rest * (rest - 1) / 2);
}

// Runs pair(size, number) for each of the sizes, over and over, at least `pairs` times in all: it allocates a block of
// that size, writes number + size into it, reads that again, frees the block, and returns what it read.
template <typename Pair>
void strides(const char* name, std::span<const uint32_t> sizes, uint64_t pairs, Pair&& pair) {
  const uint64_t rounds = (pairs + sizes.size() - 1) / sizes.size();
  uint64_t sum = 0;
  const double seconds = seconds_of([&] {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (const uint32_t size : sizes) sum += pair(size, static_cast<uint32_t>(round % 65536));
    }
  });
  require(sum == stride_sum(sizes, rounds), "a block's content changed");
  report(name, rounds * sizes.size(), seconds, sum);
}

// So many blocks of each size are allocated and then freed, so that lists of free ones have more than one (Mallacc runs
// its own "with sufficient warmup time").
inline void warm_up(std::span<const uint32_t> sizes, uint32_t count) {
  std::vector<void*> blocks;
  for (const uint32_t size : sizes) {
    for (uint32_t i = 0; i < count; ++i) blocks.push_back(malloc(size));
    for (void* block : blocks) free(block);
    blocks.clear();
  }
}

inline uint32_t malloc_and_free(uint32_t size, uint32_t number) {
  auto* block = static_cast<volatile uint32_t*>(malloc(size));
  *block = number + size;
  const uint32_t read = *block;
  free(const_cast<uint32_t*>(block));
  return read;
}

}  // namespace workload
