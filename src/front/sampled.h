// What stands before each flavour (and reclaiming.h before it): blocks that are sampled (sample/sampled_blocks.h) come
// from elsewhere and go back there; all others are the flavour's.
//
// The fast paths are the flavour's own, instruction by instruction: only a call that finds no block ready asks whether
// it is time for a sample, and only an address that lies in no slab whether it is one.
#pragma once

#include <concepts>
#include <cstddef>

#include "core/size_class.h"
#include "front/frontend.h"
#include "os/fork.h"
#include "sample/sampled_blocks.h"

namespace annex::front {

template <Frontend Flavour>
struct Sampled : Flavour {
  // Whether the flavour makes use of what the program says of a block that it frees.
  static constexpr bool kKnowsSizes = requires(void* block, size_t bytes) { Flavour::release_slow(block, bytes); };

  static void* allocate_slow(size_t bytes) noexcept {
    if (sample::is_due(bytes)) [[unlikely]] {
      if (void* block = sample::allocate(bytes, kMinAlignment)) return block;
    }
    return Flavour::allocate_slow(bytes);
  }
  template <void* slow(size_t) = allocate_slow>
  [[gnu::always_inline]] static void* allocate(size_t bytes) {
    return Flavour::template allocate<slow>(bytes);
  }

  [[gnu::noinline]] static void release_elsewhere(void* block) noexcept {
    if (sample::contains(block)) [[unlikely]]
      return sample::release(block);
    Flavour::release_slow(block);
  }
  [[gnu::noinline]] static void release_sized_elsewhere(void* block, size_t bytes) noexcept {
    if (sample::contains(block)) [[unlikely]]
      return sample::release(block);
    Flavour::release_slow(block, bytes);
  }
  [[gnu::always_inline]] static void release(void* block) noexcept {
    if constexpr (kKnowsSizes) {
      Flavour::template release<release_sized_elsewhere>(block, 0);
    } else {
      Flavour::template release<release_elsewhere>(block);
    }
  }
  // Of a block of which the program says how large or how aligned it is (0: it doesn't).
  [[gnu::always_inline]] static void release(void* block, [[maybe_unused]] size_t bytes,
                                             [[maybe_unused]] size_t alignment) noexcept {
    if constexpr (kKnowsSizes) {
      if (alignment > 0 && !sample::contains(block)) Flavour::check_alignment(block, alignment);
      Flavour::template release<release_sized_elsewhere>(block, bytes);
    } else {
      release(block);
    }
  }

  // Asked in any case: the flavour may have to see the call.
  static void* allocate_zeroed(size_t bytes) {
    return exchanged(Flavour::allocate_zeroed(bytes), bytes, kMinAlignment);
  }
  static void* allocate_aligned(size_t alignment, size_t bytes) {
    return exchanged(Flavour::allocate_aligned(alignment, bytes), bytes, alignment);
  }

  static Found look_up(const void* block) {
    if (sample::contains(block)) [[unlikely]]
      return {sample::bytes_of(block), nullptr};
    return Flavour::look_up(block);
  }

  static void hold_locks_for_fork() {
    Flavour::hold_locks_for_fork();
    os::fork.hold(sample::lock);
  }

  static bool refit(void* block, size_t bytes) requires requires { Flavour::refit(block, bytes); }
  { return !sample::contains(block) && Flavour::refit(block, bytes); }

 private:
  static void* exchanged(void* block, size_t bytes, size_t alignment) {
    if (!sample::is_due(bytes) || block == nullptr) [[likely]]
      return block;
    void* const sampled = sample::allocate(bytes, alignment);
    if (sampled == nullptr) return block;
    Flavour::release(block);
    return sampled;
  }
};

}  // namespace annex::front
