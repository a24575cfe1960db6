// A heap's cache of runs. A slab that has become empty waits here for the heap's next slab of the same length, so that
// slabs that come and go need no lock, and what they hold stays in this core's caches.
//
// It holds no more than a share of what the heap has, so that memory which one heap no longer needs reaches the others:
// see room(). Runs that are beyond it go to the page heap.
//
// To the page heap and to walks a run in the cache is a slab of its last class that has no block.
//
// Any thread may take all that is here: malloc_trim reaches what threads keep that sleep.
//
// Synchronization: one stack for each length. The heap's holder pushes and pops; whoever takes all makes it empty by
// one exchange. As nobody else pushes, what the holder finds on top twice was there in between (no ABA problem).
#pragma once

#include <algorithm>
#include <atomic>
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
    std::atomic<Slab*>& top = top_[granules - 1];
    Slab* run = top.load(std::memory_order_relaxed);
    while (run != nullptr && !top.compare_exchange_weak(run, below(run), std::memory_order_relaxed)) {
    }
    if (run != nullptr) held_.fetch_sub(granules, std::memory_order_relaxed);
    return run;
  }

  // False where there is no room, for a heap of so many granules: then it is still the caller's.
  bool push(Slab* run, uint32_t granules, uint32_t heap_granules) {
    if (held_.load(std::memory_order_relaxed) + granules > room(heap_granules)) return false;
    held_.fetch_add(granules, std::memory_order_relaxed);
    std::atomic<Slab*>& top = top_[granules - 1];
    Slab* below = top.load(std::memory_order_relaxed);
    do {
      next(run).store(below, std::memory_order_relaxed);
    } while (!top.compare_exchange_weak(below, run, std::memory_order_release, std::memory_order_relaxed));
    return true;
  }

  // For any thread: calls give(run) for each run that is here; none of them is any more.
  template <class Give>
  void take_all(Give give) {
    for (uint32_t granules = 1; granules <= kLengths; ++granules) {
      std::atomic<Slab*>& top = top_[granules - 1];
      if (top.load(std::memory_order_relaxed) == nullptr) continue;
      for (Slab* run = top.exchange(nullptr, std::memory_order_acquire); run != nullptr;) {
        Slab* const below = next(run).load(std::memory_order_relaxed);
        held_.fetch_sub(granules, std::memory_order_relaxed);
        give(run);
        run = below;
      }
    }
  }

 private:
  static std::atomic_ref<Slab*> next(Slab* run) { return std::atomic_ref<Slab*>(run->next); }
  // What is under a run that was on top a moment ago. Another thread may have taken it since, and what is read be
  // anything: then it is not used.
  [[gnu::no_sanitize_thread]] static Slab* below(Slab* run) { return __atomic_load_n(&run->next, __ATOMIC_RELAXED); }

  std::atomic<Slab*> top_[kLengths]{};
  std::atomic<uint32_t> held_{0};  // granules
};

}  // namespace annex
