// A request queue: two rings between a program thread and the support core, one for requests and one for their answers
// (SpeedMalloc section 5.2's malloc() queue and response queue; its free() queue is Client::freed).
//
// A request is taken out with a lock held, and answered before the lock is released. So a program thread that has
// waited long enough takes the lock and finds either its request, which it withdraws, or the answer: it never waits for
// a support core that is not running.
//
// Synchronization: one thread asks; whoever holds the lock takes requests out.
#pragma once

#include <cstdint>

#include "os/lock.h"
#include "support/request.h"
#include "support/ring.h"

namespace annex::support {

class RequestQueue {
 public:
  // The program. True where the support core has answered within so many polls, or before the lock was taken: the
  // answer is in *request. False: the request is withdrawn, and nobody will serve it.
  bool ask(Request* request, uint32_t polls, os::Lock& lock) {
    requests_.push(request, 1);
    for (uint32_t i = 0; i < polls; ++i) {
      if (answers_.pop(request, 1) == 1) return true;
      os::pause();
    }
    os::Guard guard(lock);
    if (requests_.pop(request, 1) == 1) return false;
    answers_.pop(request, 1);
    return true;
  }

  // The support core. Whether there is a request to answer; answer it.
  bool has_request() const { return !requests_.empty(); }
  // `serve` is called with the lock held.
  template <class Serve>
  bool answer(os::Lock& lock, Serve serve) {
    os::Guard guard(lock);
    Request request;
    if (requests_.pop(&request, 1) == 0) return false;
    serve(&request);
    answers_.push(&request, 1);
    return true;
  }

 private:
  static constexpr uint32_t kSlots = 4;  // a thread asks for one block at a time

  Ring<Request, kSlots> requests_;
  Ring<Request, kSlots> answers_;
};

}  // namespace annex::support
