// A thread's heap: see thread_heap.h.
#include "front/thread_heap.h"

#include <sys/single_threaded.h>

#include <algorithm>
#include <new>
#include <utility>

#include "front/thread_exit.h"
#include "os/all_threads.h"
#include "os/cpus.h"
#include "os/fork.h"
#include "os/forking.h"
#include "os/lock.h"
#include "pages/page_heap.h"
#include "pages/purger.h"

namespace annex::front {

constinit ThreadHeap no_heap;
constinit thread_local ThreadHeap* thread_heap = &no_heap;
constinit thread_local uint16_t thread_number = kNoNumber;
constinit thread_local ThreadHeap* own_heap = &no_heap;
constinit ThreadHeap* all_heaps = nullptr;

namespace {

constinit os::Lock pool_lock;  // guards the pool, and which heaps there are; taken before a heap's own
// Heaps without a thread, the newest first. As many as there are CPUs are warm: they keep their current slabs and the
// blocks that are ready, so that a thread which starts where others have just ended allocates at once, and each class
// from memory that it had before, unless the purger or malloc_trim has come by. The others have been flushed.
struct Pool {
  ThreadHeap* warm;
  ThreadHeap* cold;
  size_t warm_heaps;
  size_t most_warm;  // the CPUs that the first thread to end might use; 0: not known yet
};
constinit Pool pool = {};
constinit ThreadHeap first_heap;  // the first thread's: no page of its own
constinit bool first_heap_used = false;
constinit uint32_t heaps_made = 0;
constexpr uint16_t kNumberOfTheRest = UINT16_MAX;  // of all heaps for which there is no number left: no thread has it

// A heap as its inbox sees it.
struct Receiver {
  ThreadHeap* heap;

  bool owns(const Slab* slab) const { return slab->owner == heap; }
  void receive(Slab* slab, const Chain& chain) const {
    ++heap->batches;
    heap->put_back(slab, chain);
  }
  void let_go(Slab* slab) const {
    heap->note_taken_away(slab_granules(slab->size_class));
    annex::let_go(slab);
  }
};

// The way from an outbox to other heaps.
struct ToHeaps {
  static char* start(const Slab* slab, const Chain& chain) {
    // A slab of one granule starts at a multiple of its size; only longer ones need a look at their arena.
    if (slab_granules(slab->size_class) > 1) return start_of(slab);
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(chain.first) & ~(kGranule - 1));
  }
  static void post(Heap* owner, const remote::Messages& messages) {
    ThreadHeap* heap = static_cast<ThreadHeap*>(owner);
    heap->inbox.post(messages, Receiver{heap});
  }
  static void send(Slab* slab, const Chain& chain) {
    ThreadHeap* heap = static_cast<ThreadHeap*>(slab->owner);
    heap->inbox.send(slab, start(slab, chain), chain, Receiver{heap});
  }
};

uint16_t number_of(const ThreadHeap* heap) { return heap->number != kNumberOfTheRest ? heap->number : kNoNumber; }

ThreadHeap* new_heap() {
  if (!first_heap_used) {
    first_heap_used = true;
    return &first_heap;
  }
  static constinit char* room = nullptr;
  static constinit size_t room_left = 0;
  if (room_left < sizeof(ThreadHeap)) {
    constexpr size_t kRoom = 64 * 1024;
    void* fresh = page_heap.map_metadata(kRoom);
    if (fresh == nullptr) return nullptr;
    room = static_cast<char*>(fresh);
    room_left = kRoom;
  }
  ThreadHeap* heap = new (room) ThreadHeap;
  room += sizeof(ThreadHeap);
  room_left -= sizeof(ThreadHeap);
  return heap;
}

extern constinit const Sweeper heaps_sweeper;

ThreadHeap* take_pooled() {
  page_heap.books.has_thread_heaps.store(true, std::memory_order_relaxed);
  os::Guard guard(pool_lock);
  if (ThreadHeap* heap = pool.warm) {
    --pool.warm_heaps;
    pool.warm = heap->next_pooled;
    return heap;
  }
  if (ThreadHeap* heap = pool.cold) {
    pool.cold = heap->next_pooled;
    return heap;
  }
  ThreadHeap* heap = new_heap();
  if (heap == nullptr) return nullptr;
  heap->number = static_cast<uint16_t>(std::min<uint32_t>(++heaps_made, kNumberOfTheRest));
  if (os::this_thread_forks()) os::fork.hold(heap->inbox.lock);
  heap->next_of_all = all_heaps;
  __atomic_store_n(&all_heaps, heap, __ATOMIC_RELEASE);
  sweeper.store(&heaps_sweeper, std::memory_order_relaxed);
  return heap;
}

// Whether the next heap that comes may be warm; then it counts as one.
bool stays_warm() {
  os::Guard guard(pool_lock);
  if (pool.most_warm == 0) pool.most_warm = os::allowed_cpus().count();
  if (pool.warm_heaps == pool.most_warm) return false;
  ++pool.warm_heaps;
  return true;
}

// The thread has no heap of its own any more. In this order: what is held back goes the way of all that the thread
// frees, for which it needs its heap, and may fill the outbox; and that of a heap in the pool is empty.
[[gnu::cold]] void leave_heap(ThreadHeap* heap) {
  heap->held.flush();
  {
    const OwnHeap self;
    os::Guard guard(heap->inbox.lock);
    heap->lease.end();
  }
  if (heap->points != nullptr) heap->points->labels = 0;
  own_heap = &no_heap;
  thread_heap = &no_heap;
  thread_number = kNoNumber;
  heap->send();
  put_heap(heap);
}

constinit ThreadExit<ThreadHeap, leave_heap> thread_exit;

// The heap becomes the thread's own. False where nobody would put it back when the thread ends: it is in the pool
// again.
bool enter_heap(ThreadHeap* heap) {
  own_heap = heap;
  thread_number = number_of(heap);
  thread_heap = heap;
  {
    os::Guard guard(heap->inbox.lock);
    heap->lease.begin(&thread_heap, &thread_number, os::thread_id());
  }
  wake_purger();
  return thread_exit.watch(heap);
}

// What a heap keeps free that no thread uses goes back to the page heap, and holes to the system (their bytes): one in
// the pool, or a thread's that does nothing with it now, which is then taken. Of the latter not what lies in its
// outbox, its inbox or its quarantine, nor the first block of each list that is ready. Where there is a stop(), until
// that, or until another thread waits for the heap. False where it can't be had.
[[gnu::cold]] bool give_back_of(ThreadHeap* heap, Which which, size_t* holes, bool (*stop)()) {
  os::Guard guard(heap->inbox.lock);
  const os::Stop until = stop == nullptr ? os::Stop{} : os::Stop{&heap->inbox.lock, stop};
  if (heap->inbox.is_pooled()) {
    heap->flush();
    *holes += heap->make_holes(until);
    return !until();
  }
  const os::UnseenBySanitizer unseen;
  if (!heap->lease.is_taken() &&
      !heap->lease.take(heap, number_of(heap), &no_heap, kNoNumber, os::thread_exists, os::barrier_in_all_threads))
    return false;
  heap->give_runs();  // first: what has been part of a huge page goes back with what is beside it
  heap->held.for_taker([&](HeldBack held) { *holes += heap->make_holes_aside(which, until, held); });
  return !until();
}

// A heap is as good as idle where no more slow paths than half of this have been taken since the purger last looked: a
// thread that does a little each second keeps as much as one that does nothing.
constexpr uint64_t kIdle = 8192;

bool can_be_taken(const ThreadHeap* heap) { return heap->lease.has_thread() && !os::barriers_ruled_out(); }

// For the purger: gives back what heaps keep that are idle. False where there may be more to do the next time.
[[gnu::cold]] bool sweep_idle_heaps(bool (*stop)()) {
  size_t holes = 0;
  bool all = true;
  for (ThreadHeap* heap = first_of_all_heaps(); heap != nullptr && !stop(); heap = heap->next_of_all) {
    bool rested;
    // Where it has not rested, the purger comes again.
    if (heap->swept.wants(heap->activity(), kIdle, &rested)) {
      heap->swept.swept = (give_back_of(heap, rested ? Which::kPromising : Which::kSettled, &holes, stop) && rested) ||
                          !can_be_taken(heap);
    }
    all = all && heap->swept.swept;
  }
  page_heap.note_purged(holes);
  return all;
}

[[gnu::cold]] bool all_heaps_rest() {
  ThreadHeap* heap = first_of_all_heaps();
  const auto rests = [](const ThreadHeap* of) {
    return of->swept.rests(of->activity()) && (of->lease.is_taken() || !can_be_taken(of));
  };
  while (heap != nullptr && rests(heap)) heap = heap->next_of_all;
  return heap == nullptr;
}

constinit const Sweeper heaps_sweeper = {sweep_idle_heaps, all_heaps_rest};

}  // namespace

ThreadHeap* first_of_all_heaps() { return __atomic_load_n(&all_heaps, __ATOMIC_ACQUIRE); }

[[gnu::cold]] void come_back() {
  ThreadHeap* const heap = own_heap;
  {
    os::Guard guard(heap->inbox.lock);
    if (heap->lease.come_back(heap, number_of(heap))) heap->end_aside();
  }
  wake_purger();
}

void ThreadHeap::take_in() { inbox.take_in(Receiver{this}); }
void ThreadHeap::take_in_some() { inbox.take_in_some(Receiver{this}); }
[[gnu::cold]] void ThreadHeap::send() { outbox.flush(ToHeaps{}); }

bool start_thread() {
  if (thread_ends || !page_heap.set_up() || !thread_exit.has_key()) return false;
  ThreadHeap* heap = take_heap();
  return heap != nullptr && enter_heap(heap);
}

void release_remote(Slab* slab, Block* block) {
  if (slab->owner == own_heap) {
    const OwnHeap self;
    return self->put_back(slab, block);
  }
  mark_free(slab->key, block);
  // A thread that only frees gets a heap too, for its outbox. One that can't have one sends at once.
  if (own_heap == &no_heap && !start_thread()) return ToHeaps::send(slab, {block, block, 1});
  own_heap->outbox.add(slab, block, ToHeaps{});
}

ThreadHeap* take_heap() {
  ThreadHeap* heap = take_pooled();
  if (heap != nullptr) heap->inbox.leave_pool();
  return heap;
}

[[gnu::cold]] void put_heap(ThreadHeap* heap) {
  const bool warm = stays_warm();
  if (warm) {
    heap->give_runs();
  } else {
    heap->flush();
  }
  heap->inbox.enter_pool(Receiver{heap});
  os::Guard guard(pool_lock);
  ThreadHeap*& first = warm ? pool.warm : pool.cold;
  heap->next_pooled = first;
  first = heap;
}

[[gnu::cold]] size_t give_back_of_others(bool holes) {
  size_t bytes = 0;
  if (holes && !__libc_single_threaded) os::can_have_barriers();
  for (ThreadHeap* heap = first_of_all_heaps(); heap != nullptr; heap = heap->next_of_all) {
    if (heap == own_heap) continue;
    if (holes) {
      give_back_of(heap, Which::kAll, &bytes, nullptr);
    } else if (os::Guard guard(heap->inbox.lock); heap->inbox.is_pooled()) {
      heap->flush();
    }
    heap->give_cached_runs();
  }
  return bytes;
}

ThreadHeap* claim_first_heap(Block** lists) {
  if (first_heap_used) return nullptr;
  take_heap();  // which is this one
  first_heap.elsewhere = lists;
  return &first_heap;
}

void keep_first_heap() {
  for (SizeClass c = 0; c < kClasses; ++c) first_heap.free[c] = std::exchange(first_heap.elsewhere[c], nullptr);
  first_heap.elsewhere = nullptr;
  enter_heap(&first_heap);
}

[[gnu::cold]] void hold_heap_locks_for_fork() {
  os::fork.hold(pool_lock);
  // The search for locks that are the thread's already, and a pass that had to do without one, come here without it.
  for (ThreadHeap* heap = first_of_all_heaps(); heap != nullptr; heap = heap->next_of_all)
    os::fork.hold(heap->inbox.lock);
}

[[gnu::cold]] void heaps_after_fork_in_child() {
  for (ThreadHeap* heap = first_of_all_heaps(); heap != nullptr; heap = heap->next_of_all) {
    if (heap == own_heap) {
      heap->lease.note_thread(os::thread_id());
    } else {
      heap->lease.end();
    }
  }
  page_heap.books.has_thread_heaps.store(false, std::memory_order_relaxed);  // until another thread gets one
}

}  // namespace annex::front
