// A thread's heap, as the shared flavour has it: where it comes from and goes to, who has it, and the ways between
// heaps.
//
// A thread that ends leaves its heap to a pool, from which the next thread takes it, slabs and all. Heaps are never
// destroyed, so that a remote free needs no lock to reach one. A heap in the pool has no thread that would look into
// its inbox: whoever posts to it does so in its stead.
//
// A heap whose thread sleeps can be taken from it, until it comes back (lease.h): then pages in which it keeps nothing
// but free blocks go back to the system.
//
// Synchronization: any thread may call, but where something else is said.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/heap.h"
#include "core/swept.h"
#include "front/held.h"
#include "front/lease.h"
#include "policy/policy.h"
#include "remote/inbox.h"
#include "remote/outbox.h"

namespace annex::front {

// Two parts that share no cache line, with each other or with other heaps: what its thread uses, and others only while
// it sleeps, and what others write.
struct alignas(64) ThreadHeap : Heap {
  constexpr ThreadHeap() = default;

  remote::Outbox outbox;                    // empty while the heap is in the pool
  [[no_unique_address]] Policy::Held held;  // the same
  Counter batches;                          // taken in

  Lease<ThreadHeap> lease;

  alignas(64) remote::Inbox inbox;
  ThreadHeap* next_pooled = nullptr;  // under the pool's lock
  ThreadHeap* next_of_all = nullptr;  // constant once published

  // For its thread: takes in what others have freed of its blocks, or some of that; sends away what lies in the outbox.
  void take_in();
  void take_in_some();
  void send();

  // Another number when something has happened to it since.
  uint64_t activity() const { return lease.steps() + batches.value(); }
  Swept swept;
};

// What a thread without a heap points at: its lists are empty, so that the fast path needs no check.
extern constinit ThreadHeap no_heap [[gnu::visibility("hidden")]];
// The thread's heap, for its fast paths; no_heap where it has none, or that has been taken.
extern constinit thread_local ThreadHeap* thread_heap [[gnu::tls_model("initial-exec")]];
// The same, also while it has been taken.
extern constinit thread_local ThreadHeap* own_heap [[gnu::tls_model("initial-exec")]];
// thread_heap as it is at one moment: another thread may be taking it.
[[gnu::always_inline]] inline ThreadHeap* own_heap_now() { return __atomic_load_n(&thread_heap, __ATOMIC_RELAXED); }
// Its heap's number; kNoNumber where it has no heap, or more heaps have been made than there are numbers.
inline constexpr uint16_t kNoNumber = 0;
extern constinit thread_local uint16_t thread_number [[gnu::tls_model("initial-exec")]];

// The thread's heap has been taken, and it wants it back.
void come_back();

// A slow path of the thread's: while it lasts, nobody takes its heap. no_heap where it has none.
class OwnHeap {
 public:
  OwnHeap() : heap_(own_heap_now()) {
    while (heap_ == &no_heap ? own_heap != &no_heap : !enters()) {
      come_back();
      heap_ = own_heap_now();
    }
  }
  ~OwnHeap() {
    if (*this) heap_->lease.leave(step_);
  }
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;

  explicit operator bool() const { return heap_ != &no_heap; }
  ThreadHeap* get() const { return heap_; }
  ThreadHeap* operator->() const { return heap_; }

 private:
  bool enters() { return (step_ = heap_->lease.enter(heap_, thread_heap)) != heap_->lease.kNoStep; }

  ThreadHeap* heap_;
  uint64_t step_ = 0;
};

// Frees a block of another thread's heap, or of the thread's own, as long as it has been taken.
void release_remote(Slab* slab, Block* block);

// Gives the thread a heap of its own. False where it can't have one, or memory is exhausted.
bool start_thread();
// A heap that is the caller's until it puts it into the pool, for a thread that can't have one of its own; nullptr
// where memory is exhausted.
ThreadHeap* take_heap();
void put_heap(ThreadHeap* heap);

// What the heaps keep free that others have, or nobody, goes back to the page heap, and where it is wanted holes to the
// system: their bytes.
size_t give_back_of_others(bool holes);
// Of all that there are, the newest; the others by next_of_all.
ThreadHeap* first_of_all_heaps();
extern constinit ThreadHeap* all_heaps;  // which that reads, with acquire: other processes read it too

// For a front end that uses the first heap by itself while the process has one thread (solo.h), with free lists of its
// own: nullptr where a thread has that heap already. keep_first_heap() makes it the calling thread's.
ThreadHeap* claim_first_heap(Block** lists);
void keep_first_heap();

void hold_heap_locks_for_fork();
// Heaps of threads that are no more stay as they were, perhaps in the middle of a change: nobody takes them, nor what
// their outboxes hold. Remote frees to them still work, since those touch only the batch and the inbox.
void heaps_after_fork_in_child();

}  // namespace annex::front
