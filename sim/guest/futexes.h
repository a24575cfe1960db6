// Futexes in simulated time: which threads wait where, for what, and until when.
//
// No thread of the program ever sleeps in the host's futex, whose order and delays would make runs differ: it is held
// here, and when it goes on its own system call finds either the word changed (EAGAIN, which futex users must expect
// at any time) or the time over (ETIMEDOUT).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

class Futexes {
 public:
  static constexpr uint32_t kAnyBit = 0xffffffff;

  void wait(unsigned thread, Address word, uint32_t expected, uint32_t bits) {
    waiters_.push_back({thread, word, expected, bits});
  }

  // Takes up to `most` waiters of the word out, first come first served, and calls wake(thread) for each.
  template <class Wake>
  uint32_t wake(Address word, uint32_t bits, uint32_t most, Wake&& wake) {
    return take([&](const Waiter& w) { return w.word == word && (w.bits & bits) != 0; }, most, wake);
  }

  // Those whose word has changed without a wake-up: a thread that ends clears a word so.
  template <class Changed, class Wake>
  uint32_t wake_changed(Changed&& changed, Wake&& wake) {
    return take([&](const Waiter& w) { return changed(w.word, w.expected); }, UINT32_MAX, wake);
  }

  void requeue(Address from, Address to, uint32_t most) {
    for (Waiter& w : waiters_) {
      if (most == 0) return;
      if (w.word != from) continue;
      w.word = to;
      --most;
    }
  }

  // The thread waits no more, for a reason of its own.
  void forget(unsigned thread) {
    std::erase_if(waiters_, [thread](const Waiter& w) { return w.thread == thread; });
  }

 private:
  struct Waiter {
    unsigned thread;
    Address word;
    uint32_t expected;
    uint32_t bits;
  };

  template <class Wanted, class Wake>
  uint32_t take(Wanted&& wanted, uint32_t most, Wake&& wake) {
    uint32_t count = 0;
    for (size_t i = 0; i < waiters_.size() && count < most;) {
      if (!wanted(waiters_[i])) {
        ++i;
        continue;
      }
      const unsigned thread = waiters_[i].thread;
      waiters_.erase(waiters_.begin() + static_cast<ptrdiff_t>(i));
      wake(thread);
      ++count;
    }
    return count;
  }

  std::vector<Waiter> waiters_;  // in order of arrival
};

}  // namespace annex::sim
