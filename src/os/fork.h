// Fork in a process with threads. The thread that forks holds every lock of the library across the fork, so that the
// child's copy of the heap is whole.
//
// Handlers of other libraries may run while it does (those that were registered before ours), in parent and child, and
// allocate. So the thread is let into the locks that it holds: no other thread is inside of one, all data is at rest,
// and what the thread does there is as ordered as it always is. It waits for no other thread meanwhile, and starts none
// of the library's own: whatever would, asks whether this_thread_forks.
//
// The locks, in order. Who holds one takes only those further down; a fork takes all, and lets go in reverse.
//
//   0. libc's for the list of streams, where there are threads. fork takes it too, after our handlers, and waits for
//      whoever has it, as fflush(NULL), which waits for streams, such as one that getline reads, whose line grows.
//   1. Fork's own: one fork at a time
//   2. the helper threads'
//   3. which heaps there are      solo and shared: pool_lock     offload: the support core's lock
//   4. heaps, newest first        solo and shared: each heap's   offload: the orphans', each client's
//   5. the support threads' CPUs                                 offload: the CPU pool's
//   6. that of sampled blocks
//   7. arena_lock, at a moment when no other thread has let go of it in between (core/arena_lock.h)
//
// A thread may fork in the handler of a signal that came while it held some of them. Those stay as they are, and are
// the thread's afterwards too, in parent and child. Whoever holds another may wait for one of those, for ever: the
// thread waits a moment for it, then does without, and the child finds it free. What it guards may be half changed; but
// in the child of such a fork a program with threads may call nothing that isn't async-signal-safe.
#pragma once

#include <cstdint>

#include "os/lock.h"

namespace annex::os {

class Fork {
 public:
  // The calling thread is about to fork: waits until no other does. False where it forks already, and one of the
  // handlers forks again: then it holds all there is to hold.
  bool begin();
  // Has `hold_each` call hold() for each lock: first to find out whether the thread has one of them already, then to
  // take them.
  void hold_all(void (*hold_each)());
  // Takes the lock until the fork is over. A lock that is made meanwhile is taken before others know of it. False where
  // it is not taken: the thread has it already, has waited in vain, or only searches.
  bool hold(Lock& lock);
  // The same, at a moment when `ready`, which is called with it held, says so; it is let go of until then.
  bool hold_when(Lock& lock, bool (*ready)());
  // The fork is over: lets go of all that is held.
  void end_in_parent();
  void end_in_child();

 private:
  template <class LetGo>
  bool end(LetGo let_go);

  Lock one_at_a_time_;
  // The forking thread's.
  Lock* held_last_ = nullptr;
  Lock* missed_last_ = nullptr;  // waited for in vain
  bool searches_ = false;
  bool has_some_ = false;  // of the locks, since before it forked
  bool has_streams_ = false;
  uint32_t within_ = 0;  // forks that its handlers are in the middle of
};

extern constinit Fork fork;

}  // namespace annex::os
