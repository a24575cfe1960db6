// The purger: with ANNEX_BACKGROUND=1, a helper thread that gives back what is due while the program does nothing.
//
// Without it a process gives memory back where its own threads come by (commitment.h, delay), and one that does nothing
// keeps what is dirty. The purger is made before there is anything to give back, once the heap holds 2 MiB: the free
// that would call for it may be one in which no thread can be made (os/helper_thread.h). It ends when the heap has
// become smaller, wakes once a second at least, to see whether it must end, and leaves the work to keepers. Each time
// it also has what heaps keep that nobody has allocated from since the time before (take_from_idle).
#pragma once

#include <atomic>

#include "pages/page_heap.h"

namespace annex {

// What a front end has the purger do each time that it wakes, with no lock held; nullptr: nothing.
extern constinit std::atomic<void (*)()> take_from_idle;

// On a slow path of malloc, with no lock held: starts the purger where it is wanted.
void start_purger();
inline void start_wanted_purger() {
  if (page_heap.books.purger_wanted.load(std::memory_order_relaxed)) [[unlikely]]
    start_purger();
}

}  // namespace annex
