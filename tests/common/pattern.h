// Fills blocks with bytes that depend on a key and on the offset, and finds the first byte that
// differs.
//
// Two blocks with different keys differ nearly everywhere, so an overlap or a stale copy shows as a
// mismatch. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex_test {

inline constexpr std::size_t kNoMismatch = static_cast<std::size_t>(-1);

// The eight bytes at word index `index` of a block with this key.
inline std::uint64_t pattern_word(std::uint64_t key, std::size_t index) {
  std::uint64_t x = (key + 1) * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u;
  return x ^ (x >> 29);
}

// `offset`, a multiple of 8, is where in the block these bytes are: parts of one pattern may
// overlap.
inline void fill(void* block, std::size_t bytes, std::uint64_t key, std::size_t offset = 0) {
  auto* out = static_cast<unsigned char*>(block);
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const std::uint64_t word = pattern_word(key, (offset + at) / 8);
    __builtin_memcpy(out + at, &word, 8);
  }
  if (at < bytes) {
    const std::uint64_t word = pattern_word(key, (offset + at) / 8);
    __builtin_memcpy(out + at, &word, bytes - at);
  }
}

// Offset of the first byte that is not the pattern's, or kNoMismatch.
inline std::size_t mismatch(const void* block, std::size_t bytes, std::uint64_t key, std::size_t offset = 0) {
  const auto* in = static_cast<const unsigned char*>(block);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::size_t length = bytes - at < 8 ? bytes - at : 8;
    const std::uint64_t word = pattern_word(key, (offset + at) / 8);
    std::uint64_t found = word;
    if (length == 8) {
      __builtin_memcpy(&found, in + at, 8);
    }
    if (found != word || length < 8) {
      unsigned char expected[8];
      __builtin_memcpy(expected, &word, 8);
      for (std::size_t i = 0; i < length; ++i) {
        if (in[at + i] != expected[i]) return at + i;
      }
    }
  }
  return kNoMismatch;
}

// Offset of the first non-zero byte, or kNoMismatch.
inline std::size_t first_nonzero(const void* block, std::size_t bytes) {
  const auto* in = static_cast<const unsigned char*>(block);
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, in + at, 8);
    if (word != 0) break;
  }
  for (; at < bytes; ++at) {
    if (in[at] != 0) return at;
  }
  return kNoMismatch;
}

inline bool is_aligned(const void* pointer, std::size_t alignment) {
  return (reinterpret_cast<std::uintptr_t>(pointer) & (alignment - 1)) == 0;
}

}  // namespace annex_test
