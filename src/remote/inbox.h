// A heap's inbox: the slabs whose batch has something in it.
//
// A slab enters when its batch turns from empty to not empty, and its batch is emptied only after it has left, so it is
// in the inbox at most once and one link in its metadata is enough.
//
// An owner that sleeps drains nothing, while others may free all that it ever allocated. So the inbox also counts the
// slabs whose batch has become complete, and from kReapAt on a thread that sends takes those out itself (reap) and lets
// go of them; the others it posts again.
//
// Synchronization: any thread posts and reaps; only the owner (whoever holds the heap) drains.
#pragma once

#include <atomic>

#include "core/granule.h"
#include "remote/batch.h"

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

  // A slab's batch has become complete. True where it is time to reap.
  bool completed() { return complete_.fetch_add(1, std::memory_order_relaxed) + 1 >= kReapAt; }

  // Calls let_go(slab) for each slab whose batch is complete.
  template <class LetGo>
  void reap(LetGo let_go) {
    drain([&](Granule* slab) {
      if (complete(slab)) {
        slab->remote = 0;
        let_go(slab);
      } else {
        post(slab);
      }
    });
  }

  // Calls receive(slab) for each slab in the inbox; receive empties the slab's batch.
  template <class Receive>
  void drain(Receive receive) {
    complete_.store(0, std::memory_order_relaxed);
    Granule* slab = first_.exchange(nullptr, std::memory_order_seq_cst);
    while (slab != nullptr) {
      Granule* next = slab->inbox_next;  // before the batch is emptied: then the slab may be posted again
      receive(slab);
      slab = next;
    }
  }

 private:
  static constexpr uint32_t kReapAt = 32;

  std::atomic<Granule*> first_{nullptr};
  std::atomic<uint32_t> complete_{0};
};

}  // namespace annex::remote
