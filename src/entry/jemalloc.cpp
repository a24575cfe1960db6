// jemalloc's own functions (mallocx and so on). A program that is linked with libjemalloc.so gives their blocks to
// free, realloc and malloc_usable_size too (redis 8 does for Lua's memory), which are Annex's where it comes first.
// Functions that only read or set jemalloc's state, such as mallctl, stay jemalloc's, whose heap nobody uses.
//
// They do what jemalloc(3) says. Thread caches and arenas in the flags are ignored, and nallocx returns the size asked
// for, which every block has.
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

void zero_from(void* block, size_t offset) {
  const size_t end = usable(block);
  if (end > offset) memset(static_cast<char*>(block) + offset, 0, end - offset);
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
  if (block != nullptr && (flags & kZero) != 0) zero_from(block, 0);
  return block;
}

ANNEX_EXPORT void* rallocx(void* block, size_t bytes, int flags) noexcept {
  const size_t old_usable = usable(block);
  void* const moved = reallocate_aligned(block, alignment_in(flags), bytes);
  if (moved != nullptr && (flags & kZero) != 0) zero_from(moved, old_usable);
  return moved;
}

// Resizes in place, if that can be done; the usable size afterwards.
ANNEX_EXPORT size_t xallocx(void* block, size_t bytes, size_t, int flags) noexcept {
  const auto [old_usable, span] = Front::look_up(block);
  if (bytes <= old_usable || bytes > front::kMaxRequest) return old_usable;
  const bool grown = entry::refit(block, bytes) || (span != nullptr && Front::resize(span, bytes));
  if (grown && (flags & kZero) != 0) zero_from(block, old_usable);
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
