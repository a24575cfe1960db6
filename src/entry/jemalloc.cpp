// The calls that jemalloc has beside the C names. A program that is linked with libjemalloc.so gives their blocks to
// free, realloc and malloc_usable_size too (redis 8 does for what Lua holds), which are ours where we stand before it.
// What only looks into jemalloc, such as mallctl, stays jemalloc's, and sees a heap that nobody uses.
//
// As jemalloc(3) has them, but for what it leaves to the allocator: thread caches and arenas in the flags are none of
// ours, and nallocx names no more than was asked for, which every block has.
//
// Synchronization: any thread.
#include <cstddef>
#include <cstring>

#include "entry/family.h"
#include "entry/visibility.h"

using namespace annex;

namespace {

constexpr int kLogOfAlignment = 0x3f;  // of flags: MALLOCX_LG_ALIGN, MALLOCX_ZERO
constexpr int kZero = 0x40;

size_t alignment_in(int flags) { return size_t{1} << (flags & kLogOfAlignment); }

size_t usable(const void* block) { return Front::look_up(block).usable; }

void zero_behind(void* block, size_t kept) {
  const size_t all = usable(block);
  if (all > kept) memset(static_cast<char*>(block) + kept, 0, all - kept);
}

void* reallocate_aligned(void* block, size_t alignment, size_t bytes) {
  if (alignment <= kMinAlignment) return entry::reallocate(block, bytes);
  void* const moved = entry::allocate_aligned(alignment, bytes);
  return moved != nullptr ? entry::replace(block, usable(block), moved, bytes) : nullptr;
}

}  // namespace

extern "C" {

ANNEX_EXPORT void* mallocx(size_t bytes, int flags) noexcept {
  void* const block = entry::allocate_aligned(alignment_in(flags), bytes);
  if (block != nullptr && (flags & kZero) != 0) zero_behind(block, 0);
  return block;
}

ANNEX_EXPORT void* rallocx(void* block, size_t bytes, int flags) noexcept {
  const size_t kept = usable(block);
  void* const moved = reallocate_aligned(block, alignment_in(flags), bytes);
  if (moved != nullptr && (flags & kZero) != 0) zero_behind(moved, kept);
  return moved;
}

// In place: the size that there is afterwards, which may be the old one.
ANNEX_EXPORT size_t xallocx(void* block, size_t bytes, size_t, int flags) noexcept {
  const auto [kept, span] = Front::look_up(block);
  if (bytes <= kept || bytes > front::kMaxRequest) return kept;
  const bool grown = entry::refit(block, bytes) || (span != nullptr && Front::resize(span, bytes));
  if (grown && (flags & kZero) != 0) zero_behind(block, kept);
  return usable(block);
}

ANNEX_EXPORT size_t sallocx(const void* block, int) noexcept { return usable(block); }
ANNEX_EXPORT void dallocx(void* block, int) noexcept { Front::release(block); }
ANNEX_EXPORT void sdallocx(void* block, size_t bytes, int flags) noexcept {
  Front::release(block, bytes, (flags & kLogOfAlignment) == 0 ? 0 : alignment_in(flags));
}

ANNEX_EXPORT size_t nallocx(size_t bytes, int flags) noexcept {
  const size_t alignment = alignment_in(flags);
  return bytes > front::kMaxRequest || alignment > front::kMaxRequest - bytes ? 0 : bytes;
}

}  // extern "C"
