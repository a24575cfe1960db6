// A heap's inbox: the slabs whose batch has something in it, and what senders, the heap's owner and the pool of heaps
// without an owner agree on.
//
// A slab enters when its batch turns from empty to not empty, and its batch is emptied only after it has left, so it is
// in the inbox at most once and one link in its metadata is enough.
//
// The owner drains the inbox when it needs blocks. A heap in the pool has no owner, so whoever posts to it drains in
// the owner's stead. No slab is left to nobody, since each side first says what it has done and then looks:
//
//   whoever posts:   posts;             then reads pooled_, and drains if it is set
//   the owner:       writes pooled_;    then drains
//
// All four are sequentially consistent: one of the two sees what the other has done.
//
// An owner that sleeps drains nothing, while others may free all that it ever allocated. So the inbox also counts the
// slabs whose batch has become complete, and from kReapAt on the thread that sends takes those out itself (reaps) and
// lets go of them. It posts the others again, and like whoever posts it then looks: its owner may have gone to the pool
// while they were in no inbox.
//
// Synchronization: any thread sends. Draining and changing pooled_ are for the heap's holder: its owner, or, while it
// is in the pool, whoever has the lock.
#pragma once

#include <atomic>

#include "core/granule.h"
#include "os/message.h"
#include "remote/batch.h"
#include "remote/steps.h"

namespace annex::remote {

// A number of complete slabs from which on taking them out is worth it.
inline constexpr uint32_t kReapAt = 32;

template <uint32_t kComplete>
class BasicInbox {
 public:
  // Of whoever drains in the owner's stead, and of entering and leaving the pool. Around fork it is held.
  Lock lock;

  // In the functions below, receive(slab) takes the slab's batch (remote/batch.h: take) and puts its blocks back into
  // the heap, which is the caller's while it runs; let_go(slab) gives back a slab that is in none of the heap's lists.

  // Sends blocks of a slab of this inbox's heap, which starts at `slab_start`. Afterwards the slab may be gone.
  template <class Receive, class LetGo>
  void send(Granule* slab, char* slab_start, const Chain& chain, Receive receive, LetGo let_go) {
    const uint32_t capacity = capacity_of(slab);
    const uint32_t before = add(slab, slab_start, chain);
    const uint32_t count = before + chain.count;
    if (count > capacity) [[unlikely]]
      os::fatal(kFreedTwice, chain.first);
    bool posted = before == 0;
    if (posted) post(slab);
    if (count == capacity) [[unlikely]]
      posted |= completed() && reap(let_go);
    if (posted && pooled_.load(std::memory_order_seq_cst)) drain_in_the_pool(receive);
  }

  bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

  // The owner takes in what there is.
  template <class Receive>
  void drain(Receive receive) {
    take_out(receive);
  }

  // The owner leaves the heap, which it does not touch from here on.
  template <class Receive>
  void enter_pool(Receive receive) {
    Guard guard(lock);
    pooled_.store(true, std::memory_order_seq_cst);
    take_out(receive);
  }

  // The caller becomes the owner of a heap that was in the pool, or is new.
  void leave_pool() {
    Guard guard(lock);
    pooled_.store(false, std::memory_order_relaxed);
  }

 private:
  void post(Granule* slab) {
    Granule* first = first_.load(std::memory_order_relaxed);
    do {
      slab->inbox_next = first;
    } while (!first_.compare_exchange_weak(first, slab, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  // A slab's batch has become complete. True where it is time to reap.
  bool completed() { return complete_.fetch_add(1, std::memory_order_relaxed) + 1 >= kComplete; }

  // Lets go of each slab whose batch is complete. True where it has posted others again.
  template <class LetGo>
  bool reap(LetGo let_go) {
    bool posted = false;
    take_out([&](Granule* slab) {
      if (complete(slab)) {
        let_go(slab);
      } else {
        post(slab);
        posted = true;
      }
    });
    return posted;
  }

  template <class Receive>
  void drain_in_the_pool(Receive receive) {
    Guard guard(lock);
    // Not where a thread has taken the heap meanwhile: then it is the owner's to drain.
    if (pooled_.load(std::memory_order_relaxed)) take_out(receive);
  }

  // Calls act(slab) for each slab in the inbox, none of which is there any more.
  template <class Act>
  void take_out(Act act) {
    complete_.store(0, std::memory_order_relaxed);
    Granule* slab = first_.exchange(nullptr, std::memory_order_seq_cst);
    while (slab != nullptr) {
      Granule* next = slab->inbox_next;  // before act: then the slab may be posted again
      act(slab);
      slab = next;
    }
  }

  Atomic<Granule*> first_{nullptr};
  Atomic<uint32_t> complete_{0};
  Atomic<bool> pooled_{false};  // written with the lock held
};

using Inbox = BasicInbox<kReapAt>;

}  // namespace annex::remote
