// What stands before all: malloc says that memory is exhausted only after everything that the library itself keeps free
// was given back, and asked for once more: blocks and runs of the thread's own heap, what others have sent it, the
// heaps of threads that have ended.
//
// Not where the page heap finds no run (pages/find_run.cpp): the heap that asks for one is in the middle of a change
// then, and can't be flushed.
#pragma once

#include <concepts>
#include <cstddef>

#include "front/frontend.h"
#include "front/request.h"

namespace annex::front {

template <Frontend Flavour>
struct Reclaiming : Flavour {
  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept {
    void* const block = Flavour::allocate_slow(bytes);
    if (block != nullptr) [[likely]]
      return block;
    return again(bytes, [=] { return Flavour::allocate_slow(bytes); });
  }
  template <void* slow(size_t) = allocate_slow>
  [[gnu::always_inline]] static void* allocate(size_t bytes) {
    return Flavour::template allocate<slow>(bytes);
  }

  static void* allocate_zeroed(size_t bytes) {
    void* const block = Flavour::allocate_zeroed(bytes);
    if (block != nullptr) [[likely]]
      return block;
    return again(bytes, [=] { return Flavour::allocate_zeroed(bytes); });
  }

  static void* allocate_aligned(size_t alignment, size_t bytes) {
    void* const block = Flavour::allocate_aligned(alignment, bytes);
    if (block != nullptr) [[likely]]
      return block;
    return again(bytes, [=] { return Flavour::allocate_aligned(alignment, bytes); });
  }

 private:
  template <class Allocate>
  [[gnu::cold, gnu::noinline]] static void* again(size_t bytes, Allocate allocate) {
    if (bytes > kMaxRequest) return nullptr;
    Flavour::give_back(false);
    return allocate();
  }
};

}  // namespace annex::front
