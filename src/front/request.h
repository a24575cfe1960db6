// What the front ends share: requests that no size class serves, alignments, and exhausted memory.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/block.h"
#include "core/span.h"
#include "front/frontend.h"
#include "os/pages.h"
#include "pages/heap_limit.h"
#include "pages/purger.h"

namespace annex::front {

// The largest request that may succeed: there are no more addresses. For larger ones, sizes that overflowed
// among them, nothing that is kept free need be looked for.
inline constexpr size_t kMaxRequest = os::kEndOfAddresses;

[[gnu::cold, gnu::noinline]] inline void* out_of_memory() {
  say_if_heap_limit_refused();
  errno = ENOMEM;
  return nullptr;
}

inline void* allocate_large(size_t bytes, size_t alignment) {
  bool zero = false;
  void* block = nullptr;
  if (bytes <= kMaxRequest && alignment <= kMaxRequest - bytes) {
    block = allocate_span(bytes > 0 ? bytes : 1, alignment, &zero);
    start_wanted_purger();
  }
  return block != nullptr ? block : out_of_memory();
}

inline void* allocate_large_zeroed(size_t bytes) {
  bool zero = false;
  void* block = bytes <= kMaxRequest ? allocate_span(bytes, kMinAlignment, &zero) : nullptr;
  start_wanted_purger();
  if (block == nullptr) return out_of_memory();
  return zero ? block : memset(block, 0, bytes);
}

inline Found find(const void* block) {
  Granule* const head = live_block_or_die(block);
  return {usable_size(head), as_span(head)};
}

// The class whose blocks hold `bytes` and are aligned: blocks stand at multiples of their size from a multiple of
// 64 KiB, so a size that is a multiple of the alignment will do. kClasses where there is none.
inline SizeClass aligned_class(size_t alignment, size_t bytes) {
  if (alignment > kMaxSmall || bytes > kMaxSmall) return kClasses;
  SizeClass c = class_of(bytes > alignment ? bytes : alignment);
  while (c < kClasses && block_size(c) % alignment != 0) ++c;
  return c;
}

}  // namespace annex::front
