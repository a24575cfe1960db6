// A heap's cache of runs. A slab that has become empty waits here for the heap's next slab of the same length, so that
// slabs that come and go need no lock, and what they hold stays in this core's caches.
//
// It holds no more than a share of what the heap has, so that memory which one heap no longer needs reaches the others:
// see room(). Runs that are beyond it go to the arena.
//
// To the arena and to walks a run in the cache is a slab of its last class that has no block.
//
// Synchronization: none; it belongs to its heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/granule.h"

namespace annex {

class RunCache {
 public:
  static constexpr uint32_t kShare = 4;  // of the heap's granules
  static constexpr uint32_t kMost = 32;  // granules
  static constexpr uint32_t kLengths = kLongestSlab / kGranule;

  // How many granules may wait in the cache of a heap whose slabs have so many.
  static constexpr uint32_t room(uint32_t granules) { return std::min(granules / kShare + 1, kMost); }

  // A run of so many granules, the one that came last; nullptr where there is none.
  Granule* take(uint32_t granules) {
    Granule*& first = first_[granules - 1];
    Granule* run = first;
    if (run == nullptr) return nullptr;
    first = run->next;
    held_ -= granules;
    return run;
  }

  // False where there is no room, for a heap of `of` granules: then it is still the caller's.
  bool put(Granule* run, uint32_t granules, uint32_t of) {
    if (held_ + granules > room(of)) return false;
    run->next = first_[granules - 1];
    first_[granules - 1] = run;
    held_ += granules;
    return true;
  }

  // Calls give(run) for each run; none is here any more.
  template <class Give>
  void flush(Give give) {
    for (uint32_t granules = 1; granules <= kLengths; ++granules) {
      while (Granule* run = take(granules)) give(run);
    }
  }

 private:
  Granule* first_[kLengths] = {};
  uint32_t held_ = 0;  // granules
};

}  // namespace annex
