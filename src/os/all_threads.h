// What one thread asks of all others: a memory barrier, at its own expense, so that they need none; and whether one is
// there.
//
// Whoever stores, calls for the barrier, and then loads, sees what each other thread had stored before, or that thread,
// from here on, sees what was stored. (membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED: a thread that runs is
// interrupted for it, and one that doesn't has passed a barrier when it was put to sleep.)
//
// Synchronization: any thread may call.
#pragma once

#include <atomic>

namespace annex::os {

// Whether there are such barriers. Called before the first, with no lock held: it may take milliseconds. Not where the
// kernel has none (before Linux 4.14, under some emulators and filters), the program has installed a filter of system
// calls, which may end it for one that it does not know, or ANNEX_BACKGROUND=0.
bool can_have_barriers();
// There will be none any more, as far as is known.
bool barriers_ruled_out();
// False, and nothing has happened, where there are none.
bool barrier_in_all_threads();

// Stores a value that is looked at, with acquire, by somebody who then has all threads pass a barrier, and so sees what
// the thread had stored before. (ThreadSanitizer knows no such barrier.)
template <class T>
[[gnu::always_inline]] inline void store_last(T& place, T value) {
#if defined(__SANITIZE_THREAD__)
  __atomic_store_n(&place, value, __ATOMIC_RELEASE);
#else
  std::atomic_signal_fence(std::memory_order_release);
  place = value;
#endif
}

// The kernel's number of the calling thread; 0 where it isn't asked, as there are no such barriers anyhow.
long thread_id();
// Whether there is a thread of that number in this process.
bool thread_exists(long thread);

// ThreadSanitizer knows no such barrier, so that what one thread has done before can't be handed on to a third by the
// one that has had all pass it.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kBarriersAreSeen = false;
#else
inline constexpr bool kBarriersAreSeen = true;
#endif

// While an object of this class exists, what the thread reads and writes is not
// looked at by it.
class UnseenBySanitizer {
 public:
  UnseenBySanitizer();
  ~UnseenBySanitizer();
  UnseenBySanitizer(const UnseenBySanitizer&) = delete;
  UnseenBySanitizer& operator=(const UnseenBySanitizer&) = delete;
};

}  // namespace annex::os
