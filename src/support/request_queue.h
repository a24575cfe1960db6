// A request queue: two rings between a program thread and the support core, one for requests and one for their answers
// (SpeedMalloc section 5.2's malloc() queue and response queue; its free() queue is Client::freed).
//
// Requests are taken out with a lock held, and answered before it is let go. So a program thread that has waited long
// enough takes the lock and finds either its request, which it takes back, or the answer: it never waits for a support
// core that is not running.
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
  // The program. True where the support core has answered, after so many polls or while it was asked once more: the
  // answer is in *request. False: nobody has, and nobody will.
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

  // The support core. Is there something to answer?
  bool asked() const { return !requests_.empty(); }
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
