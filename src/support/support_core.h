// The support core: owns every slab, and serves the program threads (its clients). NextGen-Malloc sections 3.1 and 4.2;
// SpeedMalloc sections 4 and 5, the software half.
//
// One pass over a client:
//   1. requests that somebody waits for: the mailboxes and queues of all
//   2. its stash is filled up to each class's target, which follows what the thread takes
//   3. blocks that it has freed come back into the heap, at most kQuantum at a time
// Clients are served in turns, and each turn begins with those of all, so that no request waits behind a long run of
// frees (SpeedMalloc section 5's scheduler).
//
// A heap's lock has two kinds of holders: the client's support thread (support_thread.h), and program threads that help
// themselves, because there is no support thread, or it sleeps, or it is slower than demand. Both run the code below;
// so nothing depends on the support thread but speed.
//
// A client whose thread has ended waits in a pool, heap and all, for the next thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/lock.h"
#include "support/client.h"
#include "support/segregated_heap.h"

namespace annex::support {

class SupportCore {
 public:
  // A client for a thread that has none: one from the pool, or a new one. nullptr where memory is exhausted.
  Client* open();
  // The thread ends: what lies with the client goes back to its heap, and the client to the pool.
  void close(Client* client);
  // All there are, newest first.
  Client* clients() const { return all_.load(std::memory_order_acquire); }
  // How many are some thread's now.
  uint32_t open_clients() const { return open_clients_.load(std::memory_order_relaxed); }

  // For small blocks of threads that have no client.
  SegregatedHeap orphans;

  // Around fork: no heap is in the middle of a change. Blocks that other threads hold in their hands are lost to the
  // child.
  void hold_locks_for_fork();

 private:
  os::Lock lock_;  // of pool and list
  Client* pool_ = nullptr;
  std::atomic<Client*> all_{nullptr};  // grows at its front
  std::atomic<uint32_t> open_clients_{0};
};

extern constinit SupportCore support_core;

// --- for program threads

// For a client that found its stash empty; none where memory is exhausted. A whole batch at once: what is not touched
// costs no memory.
Batch help(Client* client, SizeClass c);
// All that the client has freed; that all clients have.
void absorb_all(Client* client);
void absorb_everything();
// The client's thread gives back what lies in its magazines and stash, and what is empty.
void empty(Client* client);
// Does what a request asks for, in the support thread or in the program thread itself.
void serve_request(Request* request);

// --- for support threads

// Whether serve would find something.
inline bool wants(const Client* client) {
  return client->activity.load(std::memory_order_relaxed) != client->activity_seen.load(std::memory_order_relaxed);
}
// Fills the client's stash and takes in some of what it has freed.
void serve(Client* client);
// Does what the client waits for; true where it had asked.
bool answer(Client* client);

}  // namespace annex::support
