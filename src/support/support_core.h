// The support core: owns every slab, and serves the program threads (its clients). NextGen-Malloc sections 3.1 and 4.2;
// SpeedMalloc sections 4 and 5, the software half.
//
// One pass over a client:
//   1. requests that somebody waits for: the mailboxes and queues of all
//   2. its stash is filled up to each class's target, which follows what the thread takes
//   3. blocks that it has freed go back to their heaps, at most kQuantum at a time
// Clients are served in turn, and the requests of all are answered before each, so that no request waits behind many
// frees (SpeedMalloc section 5's scheduler).
//
// A heap's lock has two kinds of holders: the client's support thread (support_thread.h), and program threads that do
// its work themselves, because there is no support thread, or it sleeps, or it is too slow. Both run the code below; so
// nothing but speed depends on the support thread.
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
  // A client for a thread that has none: one from the pool, or a new one. nullptr where memory is exhausted. It is the
  // base of something larger, of so many bytes, which is all zeros at first; always the same number.
  Client* open(size_t bytes);
  // The thread ends: the client's blocks go back to their heaps, and the client to the pool.
  void close(Client* client);
  // Slabs that are empty go back, of all heaps, and where that is wanted pages in which no block is out; the bytes of
  // those.
  size_t flush_heaps(bool makes_holes);
  // For the purger: the same of heaps to which little has happened since it last looked (pages/purger.h: Sweeper), or
  // from which nobody takes anything now, as the client's thread sleeps.
  bool sweep_idle_heaps(bool (*sleeps)(const Client*), bool (*stop)());
  bool all_heaps_rest() const;
  // All there are, newest first.
  Client* clients() const { return all_.load(std::memory_order_acquire); }
  // How many belong to a thread now.
  uint32_t open_clients() const { return open_clients_.load(std::memory_order_relaxed); }

  // For small blocks of threads that have no client.
  SegregatedHeap orphans;

  // Around fork: with all locks held, no heap is half changed. Blocks that another thread was about to put anywhere are
  // lost to the child.
  void hold_locks_for_fork();

 private:
  os::Lock lock_;  // of pool and list
  Client* pool_ = nullptr;
  std::atomic<Client*> all_{nullptr};  // grows at its front
  std::atomic<uint32_t> open_clients_{0};

  friend struct annex::Layout;
};

extern constinit SupportCore support_core;

// --- for program threads

// A batch for a client that found its stash empty; an empty one where memory is exhausted. It may be large: blocks that
// are not touched cost no memory.
Batch help(Client* client, SizeClass c);
// All blocks that the client has freed, or that all clients have, go back to their heaps.
void absorb_all(Client* client);
void absorb_everything();
// The client's thread gives back what is in its magazines and its stash; then its heap gives back empty slabs.
void empty(Client* client);
// The same of a client that has been taken from its thread while that sleeps (front/thread_client.h), for whoever took
// it, but for one block of each class that the thread may be about to take. barrier() is one in all threads. Until it
// is to stop: false where there may be more.
bool empty_asleep(Client* client, bool (*barrier)(), const os::Stop& stop);
// The thread has its client again: what has stayed goes back, and the magazines are closed.
void end_asleep(Client* client);
// Does what a request asks for, in the support thread or in the program thread itself.
void serve_request(Request* request);

// --- for support threads

// Whether serve() would find something to do.
inline bool wants(const Client* client) {
  return client->activity.load(std::memory_order_relaxed) != client->activity_seen.load(std::memory_order_relaxed);
}
// Fills the client's stash, and puts some of the blocks that it has freed back into their heaps.
void serve(Client* client);
// Answers the client's request; true where it had one.
bool answer(Client* client);

}  // namespace annex::support
