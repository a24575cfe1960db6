// Size classes: which block size serves a request, computed at compile time.
//
// Blocks come in steps of 16 bytes up to 128, then in eight steps per doubling up to kMaxSmall:
//
//   16 32 48 ... 128 | 144 160 ... 256 | 288 320 ... 512 | ... | 18432 20480 ... 32768
//
// Above 128 bytes a request of n bytes gets less than n / 8 bytes too many, at worst 11.1 % of the block
// (n = 2^k + 1 -> 9/8 * 2^k). Every block is a multiple of 16 bytes, and a class of size m * 2^k in a slab that starts
// at a multiple of 64 KiB gives blocks aligned to 2^k: that is how aligned requests are served. The whole table, with
// the worst waste of each class and slab, is docs/size-classes.md, printed by `annex-tables`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace annex {

using SizeClass = uint8_t;

inline constexpr size_t kMinAlignment = 16;     // of every block
inline constexpr size_t kMaxSmall = 32768;      // larger requests get a span of their own
inline constexpr size_t kTableMax = 1024;       // sizes that class_of looks up; above, it computes
inline constexpr SizeClass kLinearClasses = 8;  // 16 ... 128
inline constexpr SizeClass kStepsPerDoubling = 8;
inline constexpr SizeClass kClasses = kLinearClasses + kStepsPerDoubling * 8;

// The class of a request above 128 bytes: its leading one and the three bits after it, rounded up.
constexpr SizeClass class_by_bits(size_t bytes) {
  const size_t last = bytes - 1;
  const unsigned log2 = 63 - static_cast<unsigned>(__builtin_clzl(last));
  return static_cast<SizeClass>((log2 - 7) * kStepsPerDoubling + (last >> (log2 - 3)));
}

constexpr size_t block_size_by_rule(SizeClass size_class) {
  if (size_class < kLinearClasses) return (size_class + size_t{1}) * 16;
  const unsigned doubling = (size_class - kLinearClasses) / kStepsPerDoubling;
  const unsigned step = (size_class - kLinearClasses) % kStepsPerDoubling;
  return (size_t{9} + step) << (doubling + 4);
}

inline constexpr auto kBlockSize = [] {
  std::array<uint16_t, kClasses> sizes{};
  for (SizeClass c = 0; c < kClasses; ++c) sizes[c] = static_cast<uint16_t>(block_size_by_rule(c));
  return sizes;
}();

inline constexpr auto kClassOf16 = [] {
  std::array<SizeClass, kTableMax / 16 + 1> classes{};
  for (size_t i = 1; i < classes.size(); ++i) {
    classes[i] = i * 16 <= 128 ? static_cast<SizeClass>(i - 1) : class_by_bits(i * 16);
  }
  return classes;
}();

// The class of a request of up to kTableMax bytes (0 counts as 1).
constexpr SizeClass class_of_tiny(size_t bytes) { return kClassOf16[(bytes + 15) / 16]; }

// The class of a request of up to kMaxSmall bytes.
constexpr SizeClass class_of(size_t bytes) { return bytes <= kTableMax ? class_of_tiny(bytes) : class_by_bits(bytes); }

constexpr size_t block_size(SizeClass size_class) { return kBlockSize[size_class]; }

static_assert(block_size_by_rule(kClasses - 1) == kMaxSmall && kMaxSmall <= UINT16_MAX);

}  // namespace annex
