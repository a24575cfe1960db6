// A mailbox: one request and its answer, between a program thread and the support core.
//
// The two flags of NextGen-Malloc's Pseudo Code 1 (malloc_ready, malloc_done) are the states kRequested and kAnswered
// of one word. A request that the support core has not begun to serve can be withdrawn, so that a program thread never
// waits for a support core that is not running.
//
// Synchronization: one thread asks, the support thread answers.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/lock.h"
#include "support/request.h"

namespace annex::support {

class Mailbox {
 public:
  // The program. True where the support core has answered, which it must have begun within so many polls: the answer is
  // in *request. False: the request is withdrawn, and nobody will serve it.
  bool ask(Request* request, uint32_t polls) {
    request_ = *request;
    state_.store(kRequested, std::memory_order_release);
    uint32_t seen;
    for (uint32_t i = 0; (seen = state_.load(std::memory_order_acquire)) != kAnswered; ++i) {
      if (i >= polls && seen == kRequested && state_.compare_exchange_strong(seen, kEmpty, std::memory_order_relaxed)) {
        return false;
      }
      os::pause();
    }
    *request = request_;
    state_.store(kEmpty, std::memory_order_relaxed);
    return true;
  }

  // The program, in the child of a fork that a signal handler of its thread made while it asked: there is nobody to
  // answer. A request that the support core had begun to serve may be done or not; so at worst a block is lost.
  void abandon() {
    if (state_.load(std::memory_order_relaxed) != kTaken) return;
    if (request_.what == Request::What::kResize) request_.block = nullptr;  // refused: its owner moves it
    const bool again = request_.what == Request::What::kAllocate;
    state_.store(again ? kRequested : kAnswered, std::memory_order_release);  // as answer() does
  }

  // The support core. Whether there is a request to answer; answer it, by serve(&request).
  bool has_request() const { return state_.load(std::memory_order_relaxed) == kRequested; }
  template <class Serve>
  bool answer(Serve serve) {
    uint32_t expected = kRequested;
    if (!state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) return false;
    serve(&request_);
    state_.store(kAnswered, std::memory_order_release);
    return true;
  }

 private:
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kRequested = 1;
  static constexpr uint32_t kTaken = 2;
  static constexpr uint32_t kAnswered = 3;

  alignas(64) std::atomic<uint32_t> state_{kEmpty};
  Request request_ = {};
};

}  // namespace annex::support
