// Hardened: the shared flavour for programs that may be attacked, or have bugs that must be found. Its heaps, batches
// and fork are the shared flavour's (shared.h); what is different is done before and behind them:
//
//  - small blocks: in use or not is known apart from the block; a canary stands behind what was asked for; freed ones
//    are zeroed, wait in the thread's quarantine, and must still be zero when they are handed out
//  - large blocks: between guard pages; freed ones are gone at once, and their addresses wait (harden/guarded_span.h)
//  - empty blocks: can't be read or written
//  - lists: encoded and checked (core/sealed_words.h)
//  - places: by chance (pages/chance.h)
//
// What a check finds ends the process with one line. Sizes and alignments given to delete are checked as well.
#pragma once

#include <cstddef>

#include "front/frontend.h"
#include "front/hardened_paths.h"
#include "front/shared.h"
#include "pages/granule.h"

namespace annex::front {

struct Hardened : Shared {
  static constexpr char kName[] = "hardened";

  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept;
  template <void* slow(size_t) = allocate_slow>
  [[gnu::always_inline]] static void* allocate(size_t bytes) {
    return hardened::allocate<slow>(bytes);
  }

  // `bytes`: what the program says of the block, which ends the process where it is not so; 0: nothing.
  [[gnu::noinline]] static void release_slow(void* block, size_t bytes) noexcept;
  template <void elsewhere(void*, size_t) = release_slow>
  [[gnu::always_inline]] static void release(void* block, size_t bytes = 0) noexcept {
    hardened::release<elsewhere>(block, bytes);
  }
  // Ends the process where the block is not so aligned; 0: not said.
  static void check_alignment(const void* block, size_t alignment) noexcept;

  static void* allocate_zeroed(size_t bytes);
  static void* allocate_aligned(size_t alignment, size_t bytes);
  static Found look_up(const void* block);
  static bool resize(Span* span, size_t bytes);
  static void* move(Span* span, size_t bytes);
  static size_t give_back(bool holes = true);
  static bool is_free_block(const Slab* slab, const void* block);
  static void start();
  static void hold_locks_for_fork();

  // In place, of a small block, where it has the room.
  static bool refit(void* block, size_t bytes);
};

}  // namespace annex::front
