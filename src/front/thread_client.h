// A thread's client of the support core (support/client.h): where it comes from and goes to, and who has it.
//
// A client can be taken from a thread that sleeps (lease.h), with all that its magazines and its stash hold, until the
// thread comes back: it then looks like one that has no client, so that its next step takes the slow path.
//
// Synchronization: any thread may call, but where something else is said.
#pragma once

#include <cstddef>

#include "core/sample_points.h"
#include "core/size_class.h"
#include "core/swept.h"
#include "front/lease.h"
#include "support/client.h"
#include "support/magazine.h"

namespace annex::front {

struct ThreadClient : support::Client {
  Lease<support::Magazines> lease;  // not begun where the magazines stay empty (support/protocol.h)
  Swept swept;

  SamplePoints* points = nullptr;  // where samples of a heap profile fall; nullptr until there is a profile

  // Of the magazines' two stacks. They lie close together: a small program touches a few pages of them.
  alignas(64) void* slots[2][support::kSlotsFrom<support::usual_limit>[kClasses]];
  // Of a class's wide stacks, mapped when the thread first widens it: for all classes they take 1.5 MiB.
  void** wide_slots[kClasses];
};

// For its thread: what lay ready in the magazines is not handed out.
inline void forget_points(ThreadClient* client) {
  if (client->points != nullptr) client->points->forget();
}

// Those of a thread without a client are closed, all of them.
extern constinit support::Magazines no_magazines;
// The magazines of the thread's client, for its fast paths; no_magazines where it has none, or that has been taken.
extern constinit thread_local support::Magazines* thread_magazines [[gnu::tls_model("initial-exec")]];
// The same, also while it has been taken.
extern constinit thread_local support::Magazines* own_magazines [[gnu::tls_model("initial-exec")]];

// The thread's client, also while it has been taken; nullptr where it has none.
inline ThreadClient* own_client() {
  return own_magazines == &no_magazines ? nullptr : static_cast<ThreadClient*>(own_magazines);
}

// The thread's client has been taken, and it wants it back.
void take_client_back();

// A slow path of a thread that has a client: while it lasts, nobody takes that. Not one in another.
class OwnClient {
 public:
  OwnClient() : client_(static_cast<ThreadClient*>(own_magazines)) {
    while ((step_ = client_->lease.enter(client_, thread_magazines)) == client_->lease.kNoStep) take_client_back();
  }
  ~OwnClient() { client_->lease.leave(step_); }
  OwnClient(const OwnClient&) = delete;
  OwnClient& operator=(const OwnClient&) = delete;

  ThreadClient* get() const { return client_; }

 private:
  ThreadClient* const client_;
  uint64_t step_;
};

// Gives the thread a client. False where nobody would close it when the thread ends, or memory is exhausted.
bool open_client();

// What other threads' clients hold, whose threads do nothing with them now, goes back to its heaps.
void give_back_of_other_clients();

// In the child of a fork: clients of threads that are no more stay as they were. Nobody takes them.
void clients_after_fork_in_child();

}  // namespace annex::front
