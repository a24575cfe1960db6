// The transfer cache: where runs of one granule go from heap to heap while a third thread holds the page heap's lock,
// so that nobody waits for it.
//
// A few places that any thread fills and empties. To the page heap and to walks a run here is a slab of its last class
// that has no block, as in a heap's cache of runs (core/run_cache.h). Whoever holds the page heap's lock and needs
// runs, or gives memory back, empties it: see page_heap.cpp.
//
// Synchronization: any thread, without a lock. A place holds a run or nothing, so there is no ABA problem.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pages/granule.h"

namespace annex {

class TransferCache {
 public:
  static constexpr size_t kRuns = 32;

  // False where there is no place left: then the run is still the caller's.
  bool put(Granule* run) {
    for (size_t i = 0, at = first_place(); i < kRuns; ++i, at = (at + 1) % kRuns) {
      Granule* none = nullptr;
      if (places_[at].load(std::memory_order_relaxed) == nullptr &&
          places_[at].compare_exchange_strong(none, run, std::memory_order_release, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // nullptr where there is none.
  Granule* take() {
    for (size_t i = 0, at = first_place(); i < kRuns; ++i, at = (at + 1) % kRuns) {
      if (places_[at].load(std::memory_order_relaxed) == nullptr) continue;
      if (Granule* run = places_[at].exchange(nullptr, std::memory_order_acquire)) return run;
    }
    return nullptr;
  }

 private:
  // Threads begin at places of their own: by where their stacks are.
  static size_t first_place() {
    return (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) >> 12) * 0x9E3779B97F4A7C15u >> 32 & (kRuns - 1);
  }

  alignas(64) std::atomic<Granule*> places_[kRuns]{};
};

}  // namespace annex
