// A heap's inbox: what other threads have freed of its slabs, and what senders, the heap's owner and the pool of heaps
// without an owner agree on.
//
// Messages come in (remote/message.h), any number of them with one compare-and-swap; the owner takes them in when it
// needs blocks. A heap in the pool has no owner, so whoever posts to it takes in, in the owner's stead. Nothing is left
// to nobody, since each side first says what it has done and then looks:
//
//   whoever posts:   posts;             then reads pooled_, and takes in if it is set
//   the owner, as it leaves the heap:  sets pooled_;  then takes in
//
// All four are sequentially consistent: one of the two sees what the other has done.
//
// An owner that sleeps takes nothing in, while others may free all that it ever allocated. So from kSortAt messages on
// the thread that posts sorts them: each goes to the batch of its slab (remote/batch.h), and the slab into a list of
// such slabs. A slab enters when its batch turns from empty to not empty, and its batch is emptied only after it has
// left, so it is in the list at most once and one link in its metadata is enough. The inbox counts the slabs whose
// batch has become complete, and from kReapAt on the thread that sorts takes those out itself (reaps) and lets go of
// them. It posts the others again, and like whoever posts it then looks: the owner may have gone to the pool while they
// were in no inbox.
//
// So an owner that has slept finds few messages, and as many slabs as others have freed blocks of. It takes in at most
// kVisit of those at a time, so that no allocation takes long, and puts the rest into a second list for its next
// visits. It alone puts slabs there, and only when it has found that list empty; a reaper takes them out of either.
//
// Synchronization: any thread posts, sorts and reaps. Taking in and changing pooled_ are for the heap's holder: its
// owner, or, while it is in the pool, whoever has the lock.
#pragma once

#include <atomic>

#include "core/die.h"
#include "core/slab_record.h"
#include "remote/batch.h"
#include "remote/message.h"
#include "remote/steps.h"

namespace annex::remote {

// A number of messages from which on sorting them is worth it, and of complete slabs for which taking them out is.
inline constexpr uint32_t kSortAt = 256;
inline constexpr uint32_t kReapAt = 32;
// How many slabs an owner that needs blocks takes in at once.
inline constexpr uint32_t kVisit = 32;

inline constexpr char kOverwritten[] = "a block written to after it was freed (or another heap's):";

template <uint32_t kMessages, uint32_t kComplete, uint32_t kAtOnce>
class BasicInbox {
 public:
  // Of whoever takes in, in the owner's stead, and of entering and leaving the pool. Around fork it is held.
  Lock lock;

  // In the functions below, `heap` is the inbox's: heap.owns(slab) is whether the slab is one of its;
  // heap.receive(slab, chain) puts blocks back into it, while it is the caller's; heap.let_go(slab) gives back a slab
  // all of whose blocks are in its batch, and which is in none of the heap's lists.

  // Messages of slabs of this inbox's heap. Afterwards the slabs may be gone.
  template <class Heap>
  void post(const Messages& messages, Heap heap) {
    if (push(messages) >= kMessages) [[unlikely]]
      sort(heap);
    if (pooled_.load(std::memory_order_seq_cst)) [[unlikely]]
      take_in_for_the_pool(heap);
  }

  // The same for one chain, which goes to its slab's batch at once.
  template <class Heap>
  void send(Slab* slab, char* slab_start, const Chain& chain, Heap heap) {
    if (add_to_batch(slab, slab_start, chain, heap) && pooled_.load(std::memory_order_seq_cst)) {
      take_in_for_the_pool(heap);
    }
  }

  bool empty() const {
    return messages_.load(std::memory_order_relaxed) == 0 && slabs_.load(std::memory_order_relaxed) == nullptr &&
           left_.load(std::memory_order_relaxed) == nullptr;
  }

  // The owner takes in what there is.
  template <class Heap>
  void take_in(Heap heap) {
    receive_messages(heap);
    for_each(take_left(), [&](Slab* slab) { receive(slab, heap); });
    for_each(take_slabs(), [&](Slab* slab) { receive(slab, heap); });
  }

  // The owner takes in the messages, and some of the slabs.
  template <class Heap>
  void take_in_some(Heap heap) {
    receive_messages(heap);
    Slab* slab = take_left();
    if (slab == nullptr) slab = take_slabs();
    for (uint32_t taken = 0; slab != nullptr && taken < kAtOnce; ++taken) {
      Slab* const next = slab->inbox_next;  // before receive, as in for_each
      receive(slab, heap);
      slab = next;
    }
    if (slab != nullptr) left_.store(slab, std::memory_order_release);
  }

  // The owner leaves the heap, which it does not touch from here on.
  template <class Heap>
  void enter_pool(Heap heap) {
    Guard guard(lock);
    pooled_.store(true, std::memory_order_seq_cst);
    take_in(heap);
  }

  // The caller becomes the owner of a heap that was in the pool, or is new.
  void leave_pool() {
    Guard guard(lock);
    pooled_.store(false, std::memory_order_relaxed);
  }

  // With the lock held: whether the heap is in the pool, or on its way there or from there, and so the caller's.
  bool is_pooled() const { return pooled_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kOneMessage = uint64_t{1} << kAddressBits;

  // How many messages there are now.
  uint32_t push(const Messages& messages) {
    const uint64_t first = address_bits(reinterpret_cast<uintptr_t>(messages.first));
    const uint64_t unlinked = word_of(messages.last);  // it is in front of none
    uint64_t seen = messages_.load(std::memory_order_relaxed);
    uint64_t next;
    do {
      set_word(messages.last, unlinked | address_bits(address_in(seen)));
      next = (seen / kOneMessage + messages.count) * kOneMessage | first;
    } while (!messages_.compare_exchange_weak(seen, next, std::memory_order_seq_cst, std::memory_order_relaxed));
    return static_cast<uint32_t>(next / kOneMessage);
  }

  // Calls act(slab, chain) for each message, none of which is there any more.
  template <class Heap, class Act>
  void take_messages(Heap heap, Act act) {
    Block* carrier = reinterpret_cast<Block*>(address_in(messages_.exchange(0, std::memory_order_seq_cst)));
    while (carrier != nullptr) {
      Slab* const slab = slab_of(carrier);
      if (slab == nullptr || !heap.owns(slab)) [[unlikely]]
        die(kOverwritten, carrier, slab);
      Block* const next = next_message(carrier);  // before act: then the carrier may be another message's
      act(slab, chain_of(carrier, start_of_slab(slab)));
      carrier = next;
    }
  }

  template <class Heap>
  void receive_messages(Heap heap) {
    take_messages(heap, [&](Slab* slab, const Chain& chain) { heap.receive(slab, chain); });
  }

  template <class Heap>
  static void receive(Slab* slab, Heap heap) {
    heap.receive(slab, take_all(slab, start_of_slab(slab)));
  }

  // True where the slab has been posted, so that the caller must look at pooled_.
  template <class Heap>
  bool add_to_batch(Slab* slab, char* slab_start, const Chain& chain, Heap heap) {
    const uint32_t capacity = capacity_of(slab);
    const uint32_t before = add(slab, slab_start, chain);
    const uint32_t count = before + chain.count;
    if (count > capacity) [[unlikely]]
      die(kFreedTwice, chain.first, slab);
    bool posted = before == 0;
    if (posted) post_slab(slab);
    if (count == capacity) [[unlikely]]
      posted |= completed() && reap(heap);
    return posted;
  }

  template <class Heap>
  void sort(Heap heap) {
    take_messages(heap, [&](Slab* slab, const Chain& chain) { add_to_batch(slab, start_of_slab(slab), chain, heap); });
  }

  void post_slab(Slab* slab) {
    Slab* first = slabs_.load(std::memory_order_relaxed);
    do {
      slab->inbox_next = first;
    } while (!slabs_.compare_exchange_weak(first, slab, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  // A slab's batch has become complete. True where it is time to reap.
  bool completed() { return complete_.fetch_add(1, std::memory_order_relaxed) + 1 >= kComplete; }

  // Lets go of each slab whose batch is complete. True where it has posted others again.
  template <class Heap>
  bool reap(Heap heap) {
    bool posted = false;
    const auto look_at = [&](Slab* slab) {
      if (complete(slab)) {
        heap.let_go(slab);
      } else {
        post_slab(slab);
        posted = true;
      }
    };
    for_each(take_slabs(), look_at);
    for_each(take_left(), look_at);
    return posted;
  }

  template <class Heap>
  void take_in_for_the_pool(Heap heap) {
    Guard guard(lock);
    // Not where a thread has taken the heap meanwhile: then it is the owner's to take in.
    if (pooled_.load(std::memory_order_relaxed)) take_in(heap);
  }

  // The slabs of each list, none of which is there any more; nullptr where it is empty.
  Slab* take_slabs() {
    if (slabs_.load(std::memory_order_seq_cst) == nullptr) return nullptr;
    complete_.store(0, std::memory_order_relaxed);
    return slabs_.exchange(nullptr, std::memory_order_seq_cst);
  }
  Slab* take_left() {
    if (left_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return left_.exchange(nullptr, std::memory_order_acquire);
  }

  // Calls act(slab) for each slab of a list that was taken.
  template <class Act>
  static void for_each(Slab* slab, Act act) {
    while (slab != nullptr) {
      Slab* next = slab->inbox_next;  // before act: then the slab may be posted again
      act(slab);
      slab = next;
    }
  }

  Atomic<uint64_t> messages_{0};  // how many << kAddressBits | the carrier of the first
  Atomic<Slab*> slabs_{nullptr};
  Atomic<Slab*> left_{nullptr};  // the rest of what the owner has taken
  Atomic<uint32_t> complete_{0};
  Atomic<bool> pooled_{false};  // written with the lock held

  friend struct annex::Layout;
};

using Inbox = BasicInbox<kSortAt, kReapAt, kVisit>;

}  // namespace annex::remote
