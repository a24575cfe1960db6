// The simulated machine's scheduler: which of the program's threads is on which core, and who runs next.
//
// One thread of the program runs at a time, on one host core: the one whose core is furthest behind in simulated time,
// until that core is a quantum ahead of the next (its lead). So the order is that of simulated time but for the lead,
// and the same on every run. What must not come early asks for first_until() instead of run_until(). This file decides;
// guest/turns.h makes host threads wait for their turn.
//
//   ready    has a core (or waits in its queue)       asleep   until a time, or until it is woken, or both
//   running  the one                                  away     in a system call of the host's that may block
//
// A core with several threads runs each for a time slice. A woken thread goes to the core that it was on if that is
// idle, else to an idle one, else to the shortest queue; a core that runs out of threads takes one from the longest.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

inline constexpr Cycles kNever = std::numeric_limits<Cycles>::max();
inline constexpr unsigned kNobody = ~0u;

// What the scheduler must know of a core, and do to it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Cycles now(unsigned core) const = 0;
  virtual void idle_until(unsigned core, Cycles at) = 0;
  virtual void switch_thread(unsigned core) = 0;  // spends what that costs
};

class Scheduler {
 public:
  Scheduler(unsigned cores, Cycles quantum, Cycles slice, Clock& clock);

  // A new thread, ready at that time.
  unsigned add(Cycles at);
  void remove(unsigned thread);  // the running one

  // The running thread goes to sleep; `until` kNever: until it is woken.
  void sleep(unsigned thread, Cycles until);
  // The running thread goes into a call that the scheduler knows nothing of.
  void leave(unsigned thread);
  // Ready again, at that time at the earliest: from asleep or away.
  void wake(unsigned thread, Cycles at);
  // The running thread goes on when no core is further behind than this time; meanwhile nothing else runs on its core,
  // whose clock stays.
  void hold(unsigned thread, Cycles until);
  // The running thread lets others of its core go first.
  void yield(unsigned thread);

  // Who runs now; kNobody where no thread can before one that is away comes back. The one returned is running until
  // its core's clock reaches run_until(). Times up: see timed_out(). While a thread is away and all others are asleep,
  // nobody knows what comes first, its return or the next of their times: the latter does where `alone` says that the
  // former has been waited for.
  unsigned next(bool alone = false);
  unsigned running() const { return running_; }
  Cycles run_until() const { return run_until_; }
  // So long no other core is further behind.
  Cycles first_until() const { return first_until_; }

  bool timed_out(unsigned thread) const { return threads_[thread].timed_out; }
  Cycles now_of(unsigned thread) const { return clock_.now(threads_[thread].core); }
  unsigned core_of(unsigned thread) const { return threads_[thread].core; }
  // Whether a thread is on the core at a time near now.
  bool busy(unsigned core, Cycles at) const {
    return !cores_[core].queue.empty() && threads_[cores_[core].queue.front()].ready_at <= at;
  }
  uint64_t switches() const { return switches_; }
  // Whether the running thread is another one than its core ran before.
  bool switched() const { return switched_; }

 private:
  enum class State : uint8_t { kReady, kRunning, kAsleep, kAway, kGone };
  struct Thread {
    State state = State::kReady;
    bool timed_out = false;
    bool held = false;
    unsigned core = 0;
    Cycles ready_at = 0;
    Cycles until = kNever;
  };
  struct Core {
    std::deque<unsigned> queue;  // its threads that are ready or running; the first is on it
    unsigned last = kNobody;     // whose state it holds
    Cycles slice_end = 0;
  };

  void enqueue(unsigned thread);
  void limit(Cycles at);  // whoever runs must not run past the time at which another one could
  void dequeue(unsigned thread);
  void balance();
  Cycles time_of(const Core& core, unsigned index) const;
  void start_slice(unsigned core);

  Clock& clock_;
  Cycles quantum_;
  Cycles slice_;
  std::vector<Thread> threads_;
  std::vector<unsigned> alarms_;  // threads that are asleep until a time
  std::vector<Core> cores_;
  unsigned running_ = kNobody;
  unsigned away_ = 0;  // how many threads are
  Cycles run_until_ = 0;
  Cycles first_until_ = 0;
  uint64_t switches_ = 0;
  bool switched_ = false;
};

}  // namespace annex::sim
