// What the members of the malloc family have in common, whatever names they go by.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "front/front.h"
#include "front/request.h"
#include "pages/arena.h"

namespace annex::entry {

// Resizes a small block in place, where the front end knows each block's size to the byte (hardened).
template <class F = Front>
bool refit([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
  if constexpr (requires { F::refit(block, bytes); }) return F::refit(block, bytes);
  return false;
}

constexpr bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

inline void* allocate_array(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return front::out_of_memory();
  return Front::allocate_zeroed(total);
}

// `alignment` is a power of two.
inline void* allocate_aligned(size_t alignment, size_t bytes) {
  return alignment <= kMinAlignment ? Front::allocate(bytes) : Front::allocate_aligned(alignment, bytes);
}

// memalign, as glibc's: an alignment that is no power of two is rounded up to the next one.
inline void* allocate_rounded(size_t alignment, size_t bytes) {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  size_t rounded = kMinAlignment;
  while (rounded < alignment) rounded *= 2;
  return allocate_aligned(rounded, bytes);
}

// aligned_alloc as C23 and glibc 2.38 have it.
inline void* allocate_aligned_checked(size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate_aligned(alignment, bytes);
}

// Copies a block of `usable` bytes to a new one of `bytes`, as far as that has room, and frees it.
[[gnu::always_inline]] inline void* replace(void* block, size_t usable, void* moved, size_t bytes) {
  memcpy(moved, block, bytes < usable ? bytes : usable);
  Front::release(block);
  return moved;
}

// realloc, `bytes` not 0 or `block` NULL. In place where the block can hold the new size without wasting more than half
// of itself; then for spans by resizing them; then by moving pages; then by copying.
inline void* reallocate(void* block, size_t bytes) {
  if (block == nullptr) return Front::allocate(bytes);
  const auto [usable, span] = Front::look_up(block);
  if (bytes <= usable && bytes >= usable / 2) return block;
  if (refit(block, bytes)) return block;
  if (span != nullptr && bytes > kMaxSmall && bytes <= front::kMaxRequest && Front::resize(span, bytes)) return block;
  if (span != nullptr && bytes > usable && bytes <= front::kMaxRequest) {
    if (void* moved = Front::move(span, bytes)) return moved;
  }
  void* moved = Front::allocate(bytes);
  if (moved == nullptr) return bytes < usable ? block : nullptr;
  return replace(block, usable, moved, bytes);
}

// realloc: size 0 frees the block and returns nullptr, as glibc does.
inline void* reallocate_or_free(void* block, size_t bytes) {
  if (bytes == 0 && block != nullptr) {
    Front::release(block);
    return nullptr;
  }
  return reallocate(block, bytes);
}

}  // namespace annex::entry
