// A mailbox: one request and its answer, between a program thread and the support core.
//
// The two flags of NextGen-Malloc's Pseudo Code 1 (malloc_ready, malloc_done) are the states kAsked and kAnswered of
// one word. A request that nobody has taken up can be withdrawn, so that a program thread never waits for a support
// core that is not running.
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
  // The program. True where the support core has answered within so many polls (or has begun to): the answer is in
  // *request. False: nobody has, and nobody will.
  bool ask(Request* request, uint32_t polls) {
    request_ = *request;
    state_.store(kAsked, std::memory_order_release);
    uint32_t seen;
    for (uint32_t i = 0; (seen = state_.load(std::memory_order_acquire)) != kAnswered; ++i) {
      if (i >= polls && seen == kAsked && state_.compare_exchange_strong(seen, kEmpty, std::memory_order_relaxed)) {
        return false;
      }
      os::pause();
    }
    *request = request_;
    state_.store(kEmpty, std::memory_order_relaxed);
    return true;
  }

  // The program, in the child of a fork that its thread made while it asked, as a handler of a signal: nobody answers
  // there any more. What the support core had taken up is at rest, but may be done or not. So at worst a block is lost.
  void abandon() {
    if (state_.load(std::memory_order_relaxed) != kTaken) return;
    if (request_.what == Request::What::kResize) request_.block = nullptr;  // refused: its owner moves it
    const bool again = request_.what == Request::What::kAllocate;
    state_.store(again ? kAsked : kAnswered, std::memory_order_release);  // as answer() does
  }

  // The support core. Is there something to answer?
  bool asked() const { return state_.load(std::memory_order_relaxed) == kAsked; }
  template <class Serve>
  bool answer(Serve serve) {
    uint32_t expected = kAsked;
    if (!state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) return false;
    serve(&request_);
    state_.store(kAnswered, std::memory_order_release);
    return true;
  }

 private:
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kAsked = 1;
  static constexpr uint32_t kTaken = 2;
  static constexpr uint32_t kAnswered = 3;

  alignas(64) std::atomic<uint32_t> state_{kEmpty};
  Request request_ = {};
};

}  // namespace annex::support
