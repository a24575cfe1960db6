// A heap's cache of runs. A slab that has become empty waits here for the heap's next slab of the same length, so that
// slabs that come and go need no lock, and what they hold stays in this core's caches.
//
// It holds no more than a share of what the heap has, so that memory which one heap no longer needs reaches the others:
// see room(). Runs that are beyond it go to the page heap.
//
// To the page heap and to walks a run in the cache is a slab of its last class that has no block.
//
// Synchronization: none; it belongs to its heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"

namespace annex {

class RunCache {
 public:
  static constexpr uint32_t kShare = 4;  // of the heap's granules
  static constexpr uint32_t kMost = 32;  // granules
  static constexpr uint32_t kLengths = kLongestSlab / kGranule;

  // How many granules may wait in the cache of a heap whose slabs have so many.
  static constexpr uint32_t room(uint32_t granules) { return std::min(granules / kShare + 1, kMost); }

  // A run of so many granules, the one that came last; nullptr where there is none.
  Slab* pop(uint32_t granules) {
    Slab*& first = first_[granules - 1];
    Slab* run = first;
    if (run == nullptr) return nullptr;
    first = run->next;
    held_ -= granules;
    return run;
  }

  // False where there is no room, for a heap of so many granules: then it is still the caller's.
  bool push(Slab* run, uint32_t granules, uint32_t heap_granules) {
    if (held_ + granules > room(heap_granules)) return false;
    run->next = first_[granules - 1];
    first_[granules - 1] = run;
    held_ += granules;
    return true;
  }

  // Calls give(run) for each run; none is here any more.
  template <class Give>
  void flush(Give give) {
    for (uint32_t granules = 1; granules <= kLengths; ++granules) {
      while (Slab* run = pop(granules)) give(run);
    }
  }

 private:
  Slab* first_[kLengths] = {};
  uint32_t held_ = 0;  // granules
};

}  // namespace annex
