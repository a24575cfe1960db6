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
//   1. Fork's own: one fork at a time
//   2. the helper threads'
//   3. which heaps there are      solo and shared: pool_lock     offload: exit_key_lock, the support core's lock
//   4. heaps, newest first        solo and shared: each heap's   offload: the orphans', each client's
//   5. the support threads' CPUs                                 offload: the CPU pool's
//   6. that of sampled blocks
//   7. arena_lock, at a moment when no run is being given back or populated with the lock let go
#pragma once

#include <cstdint>

#include "os/lock.h"

namespace annex::os {

class Fork {
 public:
  // The calling thread is about to fork: waits until no other does. False where it forks already, and one of the
  // handlers forks again: then it holds all there is to hold.
  bool begin();
  // Takes the lock until the fork is over. A lock that is made meanwhile is taken before others know of it.
  void hold(Lock& lock);
  // The same for a lock that the thread has taken already.
  void keep(Lock& lock);
  // The fork is over: lets go of all that is held.
  void end_in_parent();
  void end_in_child();

 private:
  template <class LetGo>
  void end(LetGo let_go);

  Lock one_at_a_time_;
  // The forking thread's.
  Lock* held_last_ = nullptr;
  uint32_t within_ = 0;  // forks that its handlers are in the middle of
};

extern constinit Fork fork;

}  // namespace annex::os
