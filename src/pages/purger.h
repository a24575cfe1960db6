// The purger: a helper thread that gives back what is due while the program does nothing.
//
// Without it a process gives memory back where its own threads come by (commitment.h, delay), and one that does nothing
// keeps what is dirty. A process that has several threads has one (ANNEX_BACKGROUND=0: none; 1: every process). It is
// made before there is anything to give back, once the heap holds 2 MiB: the free that would call for it may be one in
// which no thread can be made (os/helper_thread.h). It leaves runs to keepers where there are some, and ends when the
// heap has become smaller. Once in ANNEX_PURGE_DELAY (a tenth of a second at least) it also gives back what heaps keep
// that have hardly been used since the time before. Under memory pressure (os/memory_pressure.h), which it asks for
// once a second while something is due, nothing waits: it gives back as if the delay were 0. While nothing is due it
// sleeps without a timer, until a large block is freed, or a thread gets a heap, or back one that was taken (offload:
// or a block comes back to a heap).
#pragma once

#include <atomic>

#include "pages/page_heap.h"

namespace annex {

// A front end's part of the purger's work, with no lock held.
struct Sweeper {
  // Gives back what lies in heaps that are not used, until stop() is true. False where there may be more the next time.
  bool (*sweep)(bool (*stop)());
  // Whether nothing has happened to any heap since it was swept.
  bool (*all_rest)();
};
extern constinit std::atomic<const Sweeper*> sweeper;  // nullptr: there is nothing to sweep

// Does what another process asks for (os/control.h); nullptr: nothing can be asked for.
extern constinit std::atomic<void (*)()> answer_control;

// On a slow path of malloc, with no lock held: starts the purger where it is wanted, and answers other processes.
void start_purger();
inline void start_wanted_purger() {
  if (page_heap.books.slow_path_called.load(std::memory_order_relaxed)) [[unlikely]]
    start_purger();
}

// Something has happened that may make more due.
void wake_sleeping_purger();
inline void wake_purger() {
  if (page_heap.books.purger_sleeps.load(std::memory_order_seq_cst)) [[unlikely]]
    wake_sleeping_purger();
}

}  // namespace annex
