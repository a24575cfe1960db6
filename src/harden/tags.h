// Small blocks with memory tags, where the machine has them (os/memory_tags.h). A block in use has a tag other than
// that of the blocks beside it, and so does its pointer; what is free has the tag 0, which no block gets. So the
// hardware finds
//
//   what is read or written behind a block, or before it      until a block further on has the same tag, one in 15
//   what is read or written of a freed block                  always until it is handed out again, then 14 of 15
//
// and free finds a pointer whose block has been freed, and handed out again, with the same odds.
//
// The rest of the hardened build knows nothing of tags: it has to do with what is free, through pointers without one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/die.h"
#include "core/granule.h"
#include "os/memory_tags.h"

namespace annex::harden {

// A block that is ready to be handed out.
[[gnu::always_inline]] inline void* tagged(void* block, size_t bytes) {
  if (!os::memory_tags) return block;
  char* const start = static_cast<char*>(block);
  char* const end = start + bytes;
  // A granule's ends may have neighbours that can't be read.
  const auto inside = [](const char* place) { return reinterpret_cast<uintptr_t>(place) % kGranule != 0; };
  void* const pointer = os::with_random_tag(block, inside(start) ? os::with_tag_of(start - kMinAlignment) : block,
                                            inside(end) ? os::with_tag_of(end) : block);
  os::set_tag(pointer, bytes);
  return pointer;
}

// The program's pointer to a block in use; the process ends where its tag is not the block's.
[[gnu::always_inline]] inline void check_tag(const void* pointer, const void* block) {
  if (os::memory_tags && os::with_tag_of(block) != pointer) [[unlikely]]
    die(kFreedTwice, block);
}

// The same, and the block is without a tag from now on.
[[gnu::always_inline]] inline void take_tag(const void* pointer, void* block, size_t bytes) {
  if (!os::memory_tags) return;
  check_tag(pointer, block);
  os::set_tag(block, bytes);
}

}  // namespace annex::harden
