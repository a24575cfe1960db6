// What the conformance tests share: declarations that the C library's headers lack, and the checks
// every block must pass.
//
// The functions that glibc does not offer are weak: the same objects also run on the C library
// alone.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "annex/annex.h"
#include "common/flavour.h"
#include "common/opaque.h"
#include "common/pattern.h"
#include "common/scenario.h"

extern "C" {
[[gnu::weak]] void cfree(void* block);
[[gnu::weak]] void free_sized(void* block, std::size_t bytes);
[[gnu::weak]] void free_aligned_sized(void* block, std::size_t alignment, std::size_t bytes);
[[gnu::weak]] decltype(annex_stats) annex_stats;
[[gnu::weak]] decltype(annex_stats_json) annex_stats_json;
[[gnu::weak]] decltype(annex_purge) annex_purge;
[[gnu::weak]] decltype(annex_owns) annex_owns;
[[gnu::weak]] decltype(annex_heap_walk) annex_heap_walk;
[[gnu::weak]] decltype(annex_malloc) annex_malloc;
[[gnu::weak]] decltype(annex_calloc) annex_calloc;
[[gnu::weak]] decltype(annex_realloc) annex_realloc;
[[gnu::weak]] decltype(annex_free) annex_free;
[[gnu::weak]] decltype(annex_aligned_alloc) annex_aligned_alloc;
[[gnu::weak]] decltype(annex_usable_size) annex_usable_size;
[[gnu::weak]] decltype(annex_version) annex_version;
}

namespace annex_test {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
inline constexpr std::size_t kMaxObject = PTRDIFF_MAX;

// Every block, whatever its size, is aligned for any fundamental type.
inline constexpr std::size_t kFundamental = 16;

// Sizes around everything an allocator may round to: the small ones, powers of two, eighths between
// them, pages.
template <typename Visit>
void for_each_interesting_size(std::size_t limit, Visit visit) {
  for (std::size_t bytes = 0; bytes <= 64 && bytes <= limit; ++bytes) visit(bytes);
  for (std::size_t power = 64; power <= limit; power *= 2) {
    for (std::size_t eighth = 0; eighth < 8; ++eighth) {
      const std::size_t middle = power + power / 8 * eighth;
      for (std::size_t bytes = middle - 1; bytes <= middle + 1; ++bytes) {
        if (bytes <= limit) visit(bytes);
      }
    }
  }
}

}  // namespace annex_test

// The call must fail for want of memory.
#define EXPECT_NO_MEMORY(call)                \
  do {                                        \
    errno = 0;                                \
    void* result_ = annex_test::opaque(call); \
    const int error_ = errno;                 \
    EXPECT_EQ(result_, nullptr) << #call;     \
    EXPECT_EQ(error_, ENOMEM) << #call;       \
  } while (false)

// The call must fail for a bad argument.
#define EXPECT_INVALID(call)                  \
  do {                                        \
    errno = 0;                                \
    void* result_ = annex_test::opaque(call); \
    const int error_ = errno;                 \
    EXPECT_EQ(result_, nullptr) << #call;     \
    EXPECT_EQ(error_, EINVAL) << #call;       \
  } while (false)
