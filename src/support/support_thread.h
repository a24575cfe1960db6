// The support thread: runs the support core's side (support_core.h) on a CPU that the program does not use.
//
//   none ------> awake          once the process has shown that it allocates, and if it has a CPU to spare
//   awake -----> asleep         nothing to do for kIdleUs
//   asleep ----> awake          after kWakeDemand times that a program thread had to help itself
//   awake -----> napping        the CPU is not free: the thread was descheduled, or as many program threads allocate as
//                               there are CPUs. 8 ms, twice as long each time, up to a second
//   napping ---> asleep         when the time is up
//   none ------> never          one CPU, a quota of one, ANNEX_BACKGROUND=0, or no thread to be had
//
// In every state but awake the program helps itself, and it is asked for no system call but the one that starts or
// wakes the thread. While it is asleep or napping the thread may run anywhere; awake it is bound to one CPU, not that
// of the thread that woke it or an SMT sibling of it, in the same cluster of caches where there is one (os/cpus.h).
//
// Synchronization: any thread may call; states are one atomic word, the futex on which the thread sleeps.
#pragma once

#include <cstdint>

namespace annex::support {

// Whether blocks and requests that are sent will be taken up at once.
bool awake();

// A program thread had to help itself. It holds no lock.
void note_demand();

// Microseconds of CPU that the support thread has used; 0 where there is none.
uint64_t support_cpu_us();

// In a forked child, which has no support thread.
void forget_support_thread_after_fork();

}  // namespace annex::support
