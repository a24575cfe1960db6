// The life of a heap's slabs, however their free blocks are kept: by lists through them (core/heap.h) or in a bitmap
// apart (support/segregated_heap.h). Each class allocates from one current slab; when that has nothing left, from one
// that has blocks to give, and only then from a new one.
//
//   made --> current --> full --(a fair share is free again)--> partial --> current ...
//                    \-> partial, where blocks are left to carve
//   empty, unless it is current: the heap's to let go of
//
// Kept says how: has_free(slab), and becomes_full(slab), for what it counts.
//
// Synchronization: its heap's.
#pragma once

#include <atomic>
#include <utility>

#include "core/slab.h"
#include "core/slab_record.h"

namespace annex {

template <class Kept>
class SlabLife {
 public:
  // The slab to allocate from: one with free blocks, or else one with blocks to carve. make() makes one where there is
  // neither; nullptr where that returns nullptr.
  template <class Make>
  [[gnu::always_inline]] Slab* choose(SizeClass c, Make make) {
    Slab* const slab = current_[c];
    if (slab != nullptr && Kept::has_free(slab)) return slab;
    Slab* candidate = partial_[c].first();
    const bool carvable = slab != nullptr && has_more(slab);
    if (candidate == nullptr || (carvable && !Kept::has_free(candidate))) {
      if (carvable) return slab;
      candidate = make(c);
      if (candidate == nullptr) return nullptr;
    } else {
      remove(candidate);
    }
    if (slab != nullptr) retire(slab);
    candidate->state = SlabState::kCurrent;
    return current_[c] = candidate;
  }

  // Blocks have come back, and `used` are still in use. (Of a full slab, a fair share or all have by now.) True where
  // it is empty, and in no list any more.
  [[gnu::always_inline]] bool came_back(Slab* slab, uint32_t used) {
    if (slab->state == SlabState::kCurrent) return false;  // perhaps empty, but about to be allocated from
    if (used == 0) {
      if (slab->state == SlabState::kPartial) remove(slab);
      return true;
    }
    if (slab->state == SlabState::kFull) partial_[slab->size_class].push_front(slab);
    return false;
  }

  // Calls act(slab) for each partial slab, which may leave its list then, until it returns false.
  template <class Act>
  void for_each_partial(Act act) const {
    for (const SlabList& list : partial_) {
      for (Slab *slab = list.first(), *next; slab != nullptr; slab = next) {
        next = slab->next;
        if (!act(slab)) return;
      }
    }
  }

  // A full slab has blocks to give before a fair share has come back.
  void becomes_partial(Slab* slab) { partial_[slab->size_class].push_back(slab); }

  // The partial slabs one after the other, whatever happens to them in between; nullptr after the last, and then from
  // the first on. Those that become partial meanwhile may be left out.
  Slab* next_in_turn() {
    while (turn_ == nullptr) {
      if (turn_class_ == kClasses) {
        turn_class_ = 0;
        return nullptr;
      }
      turn_ = partial_[turn_class_++].first();
    }
    return std::exchange(turn_, turn_->next);
  }

  Slab* current(SizeClass c) const { return current_[c]; }
  // The class has no current slab any more: it is partial or full, or in no list where it is empty.
  void leave_current(SizeClass c, uint32_t used) {
    Slab* const slab = current_[c];
    current_[c] = nullptr;
    if (used == 0) return;
    if (Kept::has_free(slab)) {
      partial_[c].push_front(slab);
    } else {
      retire(slab);
    }
  }

 private:
  void remove(Slab* slab) {
    if (slab == turn_) turn_ = slab->next;
    partial_[slab->size_class].remove(slab);
  }

  // A current slab with nothing left to give makes room for another.
  void retire(Slab* slab) {
    if (has_more(slab)) {
      partial_[slab->size_class].push_back(slab);
      return;
    }
    Kept::becomes_full(slab);
    // Last, and for others to see: from here on the heap does not touch the slab until one of its blocks comes back.
    std::atomic_ref<SlabState>(slab->state).store(SlabState::kFull, std::memory_order_release);
  }

  Slab* current_[kClasses] = {};
  SlabList partial_[kClasses];  // slabs with freed blocks first, those with only uncarved ones last
  Slab* turn_ = nullptr;        // whose turn it is, of the class before this one
  uint32_t turn_class_ = 0;
};

}  // namespace annex
