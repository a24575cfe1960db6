// A heap's inbox: the slabs whose batch has something in it.
//
// A slab enters when its batch turns from empty to not empty, and its batch is emptied only after it has left, so it is
// in the inbox at most once and one link in its metadata is enough.
//
// Synchronization: any thread posts; only the owner (whoever holds the heap) drains.
#pragma once

#include <atomic>

#include "core/granule.h"

namespace annex::remote {

class Inbox {
 public:
  void post(Granule* slab) {
    Granule* first = first_.load(std::memory_order_relaxed);
    do {
      slab->inbox_next = first;
    } while (!first_.compare_exchange_weak(first, slab, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

  // Calls receive(slab) for each slab in the inbox; receive empties the slab's batch.
  template <class Receive>
  void drain(Receive receive) {
    Granule* slab = first_.exchange(nullptr, std::memory_order_seq_cst);
    while (slab != nullptr) {
      Granule* next = slab->inbox_next;  // before the batch is emptied: then the slab may be posted again
      receive(slab);
      slab = next;
    }
  }

 private:
  std::atomic<Granule*> first_{nullptr};
};

}  // namespace annex::remote
