// The shadow of the heap: operations and checks; see model.h.
#include "property/model.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "annex/annex.h"
#include "common/opaque.h"
#include "common/pattern.h"

namespace annex_test {
namespace {

constexpr std::size_t kFundamental = 16;
constexpr std::size_t kWholeBelow = 32 * 1024;  // blocks up to this size are filled from end to end
constexpr std::size_t kProbe = 64;              // the others at both ends and around each stride
constexpr std::size_t kStride = 64 * 1024;

// Calls visit(offset, length) for the parts of a block that carry the pattern.
template <typename Visit>
bool for_each_part(std::size_t usable, std::size_t upto, Visit visit) {
  if (usable <= kWholeBelow) return visit(std::size_t{0}, upto);
  for (std::size_t at = 0; at < usable; at += kStride) {
    // From just before each stride to just after it, so that a page boundary lies inside.
    const std::size_t low = at < kProbe ? 0 : at - kProbe;
    std::size_t high = at + kProbe;
    if (high > upto) high = upto;
    if (low < high && !visit(low, high - low)) return false;
  }
  const std::size_t tail = (usable - kProbe) & ~std::size_t{7};
  if (tail < upto && !visit(tail, upto - tail)) return false;
  return true;
}

}  // namespace

Model::Model(std::size_t max_bytes, std::size_t max_blocks) : max_bytes_(max_bytes), max_blocks_(max_blocks) {}

Model::~Model() {
  for (const Block& block : live_) annex_free(block.start);
}

void Model::fail(const char* format, ...) {
  if (failed_) return;
  failed_ = true;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure_, sizeof failure_, format, arguments);
  va_end(arguments);
}

bool Model::room_for(std::size_t bytes) const {
  return !failed_ && bytes <= max_bytes_ && live_bytes_ + bytes <= max_bytes_ && live_.size() < max_blocks_;
}

void Model::write(const Block& block) {
  for_each_part(block.usable, block.usable, [&](std::size_t at, std::size_t length) {
    fill(block.start + at, length, block.key, at);
    return true;
  });
}

bool Model::intact(const Block& block, std::size_t upto, const char* when) {
  return for_each_part(block.usable, upto, [&](std::size_t at, std::size_t length) {
    const std::size_t wrong = mismatch(block.start + at, length, block.key, at);
    if (wrong == kNoMismatch) return true;
    fail("%s: block %p of %zu bytes (usable %zu) has changed at offset %zu", when, static_cast<void*>(block.start),
         block.bytes, block.usable, at + wrong);
    return false;
  });
}

void Model::admit(void* start, std::size_t bytes, std::size_t alignment, const char* how) {
  if (start == nullptr) return fail("%s of %zu bytes, alignment %zu: no memory", how, bytes, alignment);
  if (!is_aligned(start, alignment) || !is_aligned(start, kFundamental)) {
    return fail("%s of %zu bytes: %p is not aligned to %zu", how, bytes, start, alignment);
  }
  const std::size_t usable = annex_usable_size(start);
  if (usable < bytes) return fail("%s of %zu bytes: only %zu usable", how, bytes, usable);
  if (!annex_owns(start)) return fail("%s of %zu bytes: %p is not owned", how, bytes, start);
  const auto low = reinterpret_cast<std::uintptr_t>(start);
  // A block of no usable bytes still takes an address of its own.
  const std::uintptr_t high = low + (usable == 0 ? 1 : usable);
  const auto after = extents_.lower_bound(low);
  if (after != extents_.end() && after->first < high) {
    return fail("%s of %zu bytes: %p (usable %zu) runs into the live block at 0x%zx", how, bytes, start, usable,
                after->first);
  }
  if (after != extents_.begin()) {
    const auto before = std::prev(after);
    if (before->second > low) {
      return fail("%s of %zu bytes: %p lies in the live block at 0x%zx", how, bytes, start, before->first);
    }
  }
  extents_.emplace_hint(after, low, high);
  const Block block{static_cast<char*>(start), bytes, usable, alignment, next_key_};
  ++next_key_;
  live_bytes_ += usable;
  live_.push_back(block);
  write(block);
}

void Model::forget(const Block& block) {
  extents_.erase(reinterpret_cast<std::uintptr_t>(block.start));
  live_bytes_ -= block.usable;
}

void Model::allocate(std::size_t bytes) {
  if (!room_for(bytes)) return;
  admit(opaque(annex_malloc(bytes)), bytes, kFundamental, "malloc");
}

void Model::allocate_zeroed(std::size_t count, std::size_t bytes) {
  std::size_t product;
  if (__builtin_mul_overflow(count, bytes, &product)) {
    errno = 0;
    if (opaque(annex_calloc(count, bytes)) != nullptr || errno != ENOMEM) {
      fail("calloc(%zu, %zu) overflows and did not fail with ENOMEM", count, bytes);
    }
    return;
  }
  if (!room_for(product)) return;
  void* start = opaque(annex_calloc(count, bytes));
  if (start != nullptr) {
    const std::size_t dirty = first_nonzero(start, product);
    if (dirty != kNoMismatch) {
      return fail("calloc of %zu bytes: %p is not zero at offset %zu", product, start, dirty);
    }
  }
  admit(start, product, kFundamental, "calloc");
}

void Model::allocate_aligned(std::size_t alignment, std::size_t bytes) {
  if (failed_) return;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = 0;
    if (opaque(annex_aligned_alloc(alignment, bytes)) != nullptr || errno != EINVAL) {
      fail("aligned_alloc(%zu, %zu) did not fail with EINVAL", alignment, bytes);
    }
    return;
  }
  if (!room_for(bytes)) return;
  admit(opaque(annex_aligned_alloc(alignment, bytes)), bytes, alignment, "aligned_alloc");
}

void Model::reallocate(std::size_t index, std::size_t bytes) {
  if (live_.empty()) {
    if (!room_for(bytes)) return;
    return admit(opaque(annex_realloc(nullptr, bytes)), bytes, kFundamental, "realloc of NULL");
  }
  const Block old = live_[index % live_.size()];
  if (!room_for(bytes > old.usable ? bytes - old.usable : 0)) return;
  if (!intact(old, old.usable, "before realloc")) return;
  live_[index % live_.size()] = live_.back();
  live_.pop_back();
  forget(old);
  void* start = opaque(annex_realloc(old.start, bytes));
  if (bytes == 0) {
    if (start != nullptr) fail("realloc to 0 bytes returned %p", start);
    return;
  }
  if (start == nullptr) return fail("realloc from %zu to %zu bytes: no memory", old.usable, bytes);
  Block moved = old;
  moved.start = static_cast<char*>(start);
  if (!intact(moved, old.usable < bytes ? old.usable : bytes, "after realloc")) return;
  admit(start, bytes, kFundamental, "realloc");
}

void Model::release(std::size_t index) {
  if (failed_ || live_.empty()) return;
  const Block block = live_[index % live_.size()];
  if (!intact(block, block.usable, "at free")) return;
  if (annex_usable_size(block.start) != block.usable) {
    return fail("the usable size of %p was %zu and is %zu", static_cast<void*>(block.start), block.usable,
                annex_usable_size(block.start));
  }
  live_[index % live_.size()] = live_.back();
  live_.pop_back();
  forget(block);
  errno = 4242;
  annex_free(block.start);
  if (errno != 4242) fail("free of %zu bytes changed errno to %d", block.usable, errno);
}

void Model::check(std::size_t index) {
  if (failed_ || live_.empty()) return;
  const Block& block = live_[index % live_.size()];
  intact(block, block.usable, "while live");
}

void Model::check_all() {
  for (const Block& block : live_) {
    if (failed_ || !intact(block, block.usable, "while live")) return;
  }
}

void Model::impossible(std::size_t bytes) {
  if (failed_) return;
  errno = 0;
  if (opaque(annex_malloc(bytes)) != nullptr || errno != ENOMEM) fail("malloc(%zu) did not fail", bytes);
  errno = 0;
  if (opaque(annex_calloc(1, bytes)) != nullptr || errno != ENOMEM) fail("calloc(1, %zu) did not fail", bytes);
  errno = 0;
  if (opaque(annex_aligned_alloc(64, bytes)) != nullptr || errno != ENOMEM) {
    fail("aligned_alloc(64, %zu) did not fail", bytes);
  }
  void* old = live_.empty() ? nullptr : live_.front().start;
  errno = 0;
  if (opaque(annex_realloc(old, bytes)) != nullptr || errno != ENOMEM) fail("realloc to %zu did not fail", bytes);
  check(0);
}

void Model::purge() {
  if (!failed_) annex_purge();
}

void Model::release_all() {
  while (!failed_ && !live_.empty()) release(live_.size() - 1);
}

}  // namespace annex_test
