// Small blocks with memory tags, where the machine has them (os/memory_tags.h). A block in use and the program's
// pointer to it have a tag that the blocks on both sides don't have; free blocks have tag 0, which no block in use has.
// So the hardware finds a read or write
//
//   just before or behind a block     always; further away, in 14 of 15 blocks
//   of a freed block                  always until it is handed out again, then in 14 of 15 cases
//
// and free finds a pointer whose block has been freed, and handed out again, with the same odds.
//
// The rest of the hardened build knows nothing of tags: it works on free blocks, through pointers with tag 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/die.h"
#include "core/slab_record.h"
#include "os/memory_tags.h"

namespace annex::harden {

// A block that is ready to be handed out.
[[gnu::always_inline]] inline void* tagged(void* block, size_t bytes) {
  if (!os::memory_tags) return block;
  char* const start = static_cast<char*>(block);
  char* const end = start + bytes;
  // What lies before and behind a granule may be unreadable.
  const auto inside = [](const char* place) { return reinterpret_cast<uintptr_t>(place) % kGranule != 0; };
  void* const pointer = os::with_random_tag(block, inside(start) ? os::with_tag_of(start - kMinAlignment) : block,
                                            inside(end) ? os::with_tag_of(end) : block);
  os::set_tag(pointer, bytes);
  return pointer;
}

// The program's pointer to a block in use; the process ends where its tag is not the block's.
[[gnu::always_inline]] inline void check_tag(const void* pointer, const void* block) {
  if (os::memory_tags && os::with_tag_of(block) != pointer) [[unlikely]]
    die_at(kFreedTwice, block);
}

// The same; from now on the block has tag 0.
[[gnu::always_inline]] inline void take_tag(const void* pointer, void* block, size_t bytes) {
  if (!os::memory_tags) return;
  check_tag(pointer, block);
  os::set_tag(block, bytes);
}

}  // namespace annex::harden
