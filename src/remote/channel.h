// The channel: how closed batches get to the heaps that own their slabs. They become messages (remote/message.h), kept
// by the heap that they are for, and posted together, one compare-and-swap for all that go to one heap: when the thread
// holds kBudget bytes of them, or when a place is needed for another heap.
//
// BatchIt's paper compares four ways: by the heap, as here, or by the slab, each with batches and without. The other
// three are experiments (targets annex-unbatched, annex-by-slab, annex-by-slab-unbatched).
//
// Synchronization: none; a channel belongs to one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/slab_record.h"
#include "remote/message.h"

namespace annex::remote {

// to.post(heap, messages) is how the front end gets there (inbox.h); to.start(slab, chain) is the slab's start.
class ByHeap {
 public:
  static constexpr size_t kHeaps = 32;
  static constexpr size_t kBudget = 16 * 1024;

  template <class To>
  void add(Slab* slab, const Chain& chain, To to) {
    const uint64_t at = reinterpret_cast<uintptr_t>(slab->owner) * 0x9E3779B97F4A7C15u >> kShift;
    Place& place = places_[at];
    if (place.heap != slab->owner) {
      post(&place, to);
      place.heap = slab->owner;
    }
    Messages& messages = place.messages;
    messages.first = make_message(chain, to.start(slab, chain), messages.first);
    if (messages.last == nullptr) messages.last = messages.first;
    ++messages.count;
    filled_ |= uint32_t{1} << at;
    bytes_ += chain.count * block_size(slab->size_class);
    if (bytes_ >= kBudget) flush(to);
  }

  template <class To>
  void flush(To to) {
    bytes_ = 0;
    for (uint32_t filled = std::exchange(filled_, 0); filled != 0; filled &= filled - 1) {
      post(&places_[std::countr_zero(filled)], to);
    }
  }

 private:
  static constexpr int kShift = 64 - std::countr_zero(kHeaps);
  static_assert(std::has_single_bit(kHeaps) && kHeaps <= 32);

  struct Place {
    Heap* heap = nullptr;
    Messages messages;
  };

  // What is posted stays counted in bytes_, until the next flush.
  template <class To>
  static void post(Place* place, To to) {
    if (place->messages.count == 0) return;
    const Messages messages = place->messages;
    place->messages = {};
    to.post(place->heap, messages);
  }

  Place places_[kHeaps];
  uint32_t filled_ = 0;  // a bit for each place that may hold messages
  size_t bytes_ = 0;
};

}  // namespace annex::remote
