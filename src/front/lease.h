// A thread's lease of its heap, so that the heap can be taken from a thread that sleeps, which keeps blocks, slabs and
// pages free and gives nothing back. Its fast paths pay nothing for it.
//
// Whoever takes the heap (the purger, malloc_trim) makes the thread look like one that has none: `mine`, from which its
// fast paths get the heap, leads to the empty one (thread_heap.h: no_heap). So does every step from then on take the
// slow path, which finds out and waits. What may be under way is known:
//
//   a slow path   says so first, and then looks at `mine` again; a taker writes `mine`, has all threads pass a barrier
//                 (os/all_threads.h), and then looks: one of the two sees the other
//   a fast path   says nothing; one at most is under way, as the thread does one thing at a time. It may have been
//                 stopped anywhere, and go on at any time. What a taker may do to the heap takes that into account
//                 (core/holes.h: make_holes_aside; harden/quarantine.h)
//
// Synchronization: enter, leave and steps as said there; all others with the lock of the heap's inbox held, under which
// a heap also enters and leaves the pool. A taker holds it for as long as it works.
#pragma once

#include <atomic>
#include <cstdint>

#include "remote/steps.h"

namespace annex::front {

template <class Heap>
class Lease {
 public:
  // --- the thread whose heap it is

  // It has the heap from now on, in `mine`; its number is in `number`, where heaps have numbers.
  // `thread`: the kernel's number of it.
  void begin(Heap** mine, uint16_t* number, long thread) {
    number_ = number;
    thread_ = thread;
    mine_.store(mine, std::memory_order_relaxed);
  }
  // It leaves the heap, which it has entered; or it is not there any more.
  void end() { mine_.store(nullptr, std::memory_order_relaxed); }

  // Around each slow path: from one to the other the heap is the thread's.
  static constexpr uint64_t kNoStep = 0;
  // The step that has begun, for leave(); kNoStep where the heap has been taken, or is about to be, and the thread must
  // come back first.
  uint64_t enter(Heap* heap, Heap*& mine) {
    const uint64_t step = steps_.load(std::memory_order_relaxed) | 1;
    steps_.store(step, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the barrier in all threads does the rest
    if (remote::AtomicRef<Heap*>(mine).load(std::memory_order_relaxed) == heap) [[likely]]
      return step;
    leave(step);
    return kNoStep;
  }
  // (A slow path that never ends, by siglongjmp or cancellation, counts until the next one.)
  void leave(uint64_t step) { steps_.store(step + 1, std::memory_order_release); }

  // True where the heap had been taken.
  bool come_back(Heap* heap, uint16_t number) {
    point_at(heap, number);
    return taken_.exchange(false);
  }

  // --- others

  // Two more each time that the thread has entered and left.
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  bool has_thread() const { return mine_.load(std::memory_order_relaxed) != nullptr; }
  // Without the lock: as it was a moment ago.
  bool is_taken() const { return taken_; }

  // Takes the heap, where a thread has it that does nothing with it. exists(thread) is whether there is still such a
  // thread: one may have ended without a word (by the system call alone), and `mine` with it. barrier() is false where
  // there is none.
  template <class Exists, class Barrier>
  bool take(Heap* heap, uint16_t number, Heap* none, uint16_t none_number, Exists exists, Barrier barrier) {
    if (!has_thread() || taken_) return false;
    if (!exists(thread_)) return end(), false;
    point_at(none, none_number);
    taken_ = barrier() && steps_.load(std::memory_order_acquire) % 2 == 0;
    if (!taken_) point_at(heap, number);
    return taken_;
  }

  // In the child of a fork, the thread that has forked.
  void note_thread(long thread) { thread_ = thread; }

 private:
  void point_at(Heap* heap, uint16_t number) {
    remote::AtomicRef<Heap*>(*mine_.load(std::memory_order_relaxed)).store(heap, std::memory_order_relaxed);
    if (number_ == nullptr) return;
    remote::AtomicRef<uint16_t>(*number_).store(number, std::memory_order_relaxed);
  }

  // Where the thread's fast paths find its heap and the heap's number; nullptr where no thread has it, or it has none.
  remote::Atomic<Heap**> mine_{nullptr};
  uint16_t* number_ = nullptr;
  long thread_ = 0;
  std::atomic<bool> taken_{false};
  remote::Atomic<uint64_t> steps_{0};  // odd while the thread is on a slow path

  friend struct annex::Layout;
};

}  // namespace annex::front
