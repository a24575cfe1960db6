// Fork in a process with threads. The thread that forks holds every lock of the library across the fork, so that the
// child's copy of the heap is whole.
//
// Handlers of other libraries that were registered before ours run while it does, in parent and child, and may
// allocate. So the thread is let into the locks that it holds: no other thread is inside of one, and no data is half
// changed. Meanwhile it waits for no other thread and starts none of the library's own: code that would do either asks
// this_thread_forks() first.
//
// The locks, in order. A thread that holds one takes only those further down; a fork takes all, and releases them in
// reverse.
//
//   0. libc's lock of the list of streams, where there are threads. libc's fork takes it too, after our handlers. Its
//      holder may wait for one of our locks: fflush(NULL) holds it and waits for each stream, and a thread that holds
//      a stream in getline allocates.
//   1. Fork's own: one fork at a time
//   2. the helper threads'
//   3. which heaps there are      solo and shared: pool_lock     offload: the support core's lock
//   4. heaps, newest first        solo and shared: each heap's   offload: each client's, of who has it; then the
//                                                                orphans', and each client's heap's
//   5. the support threads' CPUs                                 offload: the CPU pool's
//   6. that of sampled blocks; that of heap profiles
//   7. page_heap_lock, at a moment when no other thread has released it in the middle of its work (pages/locked.h)
//
// A thread may fork in the handler of a signal that came while it held some of them. It keeps those, in parent and
// child, also after the fork. The holder of another one may be waiting for one of those, for ever: so the thread waits
// a moment for each, and then does without; the child finds that lock free. What it guards may be half changed then.
// But in the child of such a fork, a program with threads may call nothing that isn't async-signal-safe.
#pragma once

#include <cstdint>

#include "os/lock.h"

namespace annex::os {

class Fork {
 public:
  // The calling thread is about to fork: waits until no other does. False where a handler of its fork forks again: then
  // it holds all locks already.
  bool begin();
  // Calls `hold_each`, which calls hold() for each lock, twice: first to find out whether the thread holds one of them
  // already, then to take them.
  void hold_all(void (*hold_each)());
  // Takes the lock until the fork is over. (A lock that is made meanwhile is held before other threads can see it.)
  // False where it is not taken: the thread holds it already, has waited in vain, or this is hold_all's first round.
  bool hold(Lock& lock);
  // The same, at a moment when `ready`, which is called with the lock held, returns true. Until then it is released
  // again and again.
  bool hold_when(Lock& lock, bool (*ready)());
  // The fork is over: releases all locks.
  void end_in_parent();
  void end_in_child();

 private:
  template <class Release>
  bool end(Release release);

  Lock one_at_a_time_;
  // The forking thread's.
  Lock* held_last_ = nullptr;    // list of those that are held, the last one first
  Lock* missed_last_ = nullptr;  // list of those that it has waited for in vain
  bool searching_ = false;       // hold_all's first round
  bool had_some_ = false;        // it held some of the locks before it forked
  bool has_streams_ = false;     // libc's lock of the list of streams
  uint32_t depth_ = 0;           // forks by handlers of its fork, which go on
};

extern constinit Fork fork;

}  // namespace annex::os
