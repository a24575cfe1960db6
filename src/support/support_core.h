// The support core: owns every slab, and serves the program threads (its clients). NextGen-Malloc sections 3.1 and 4.2;
// SpeedMalloc sections 4 and 5, the software half.
//
// One pass over a client:
//   1. requests that somebody waits for: the mailboxes of all
//   2. its stash is filled up to each class's target, which follows what the thread takes
//   3. blocks that it has freed come back into the heap, at most kQuantum at a time
// Clients are served in turns, and each turn begins with the mailboxes, so that no request waits behind a long run of
// frees (SpeedMalloc section 5's scheduler).
//
// The metadata has one lock and two kinds of holders: the support thread (support_thread.h), and a program thread that
// helps itself, because there is no support thread, or it sleeps, or it is slower than demand. Both run the code below;
// so nothing depends on the support thread but speed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/heap.h"
#include "os/lock.h"
#include "support/client.h"
#include "support/segregated_heap.h"

namespace annex::support {

class SupportCore {
 public:
  os::Lock lock;  // of everything below, and of each client's support side

  // --- with the lock held

  // A client for a thread that has none: one from the pool, or a new one. nullptr where memory is exhausted.
  Client* open();
  // The thread ends: everything that lies with the client goes back to the heap, and the client to the pool.
  void close(Client* client);

  // For a client that found its stash empty; none where memory is exhausted. A whole handful at once, so that threads
  // do not share cache lines: what is not touched costs no memory.
  Handful help(Client* client, SizeClass c);
  void* take_one(SizeClass c);
  void put(void* const* blocks, uint32_t count);
  // All that the client has freed; that all clients have.
  void absorb_all(Client* client);
  void absorb_everything();
  // Stash, freed and magazines of the client, and what is empty, go back.
  void empty(Client* client);

  // Fills the client's stash and takes in some of what it has freed.
  void serve(Client* client);

  // --- without

  // Whether serve would find something. For the support thread.
  static bool wants(const Client* client) {
    return client->activity.load(std::memory_order_relaxed) != client->activity_seen;
  }
  // For the support thread; true where somebody had asked.
  bool answer_requests();
  Client* clients() const { return all_.load(std::memory_order_acquire); }

  Counter helped;  // times that a program thread took blocks itself
  Counter filled;  // times that a stash was filled
  uint32_t clients_count = 0;

 private:
  static constexpr uint32_t kQuantum = 64;
  static constexpr uint32_t kFill = 16;  // handfuls

  bool fill(Client* client);
  uint32_t absorb(Client* client);

  SegregatedHeap heap_;
  Client* pool_ = nullptr;
  std::atomic<Client*> all_{nullptr};  // grows at its front
};

extern constinit SupportCore support_core;

// Does what a request asks for, in the support thread or in the program thread itself. Takes the lock where it must.
void serve_request(Request* request);

}  // namespace annex::support
