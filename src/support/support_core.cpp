// The support core: see support_core.h.
#include "support/support_core.h"

#include <algorithm>

#include "core/block.h"
#include "core/span.h"
#include "os/fork.h"
#include "os/forking.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex::support {

constinit SupportCore support_core;

namespace {

constexpr uint32_t kQuantum = 64;  // freed blocks that go back to their heaps at a time
constexpr uint32_t kFill = 16;     // batches put into stashes at a time

// How many blocks of a class may be in a thread's stash: a small part of those that it has. With the heap's lock held.
uint32_t target_limit(const Client* client, SizeClass c) {
  const size_t share = client->heap.bytes(c) / 64;
  return std::clamp(static_cast<uint32_t>(share / block_size(c)), batch_of(c), stash_limit(c));
}

// How large a batch may be for a thread with that target: half of it, so that one batch is in use and one in the stash.
uint32_t largest_batch(SizeClass c, uint32_t target) { return std::max(batch_of(c), target / 2); }

Client* new_client(size_t bytes) {
  void* room = page_heap.map_metadata(bytes);
  if (room == nullptr) return nullptr;
  // Most of a new client is zero, as fresh pages are. A constructor would touch all of them.
  Client* client = static_cast<Client*>(room);
  for (SizeClass c = 0; c < kClasses; ++c) client->close(c);
  return client;
}

// Keeps each class's stash at its target: refills it when a quarter has been taken, and raises the target where all was
// taken. At most about kFill batches, so that nobody waits long for the lock. True where there may be more to do.
bool fill(Client* client) {
  os::Guard guard(client->heap.lock);
  uint32_t filled_up = 0;
  for (SizeClass c = 0; c < kClasses && filled_up < kFill; ++c) {
    uint32_t target = client->target[c];
    if (target == 0 || !client->stash.needs_refill(c)) continue;
    uint32_t held = client->stash.held(c);
    if (held == 0) client->target[c] = static_cast<uint16_t>(target = std::min(2 * target, target_limit(client, c)));
    while (held < target && !client->stash.full(c)) {
      const Batch batch = client->heap.take(c, largest_batch(c, target));
      if (batch.mask == 0) break;
      client->stash.put(c, batch);
      held += batch.count();
      ++filled_up;
    }
  }
  return filled_up >= kFill;
}

// For a small block, with its heap's lock held.
void allocate(Request* request) {
  if (request->heap == nullptr) {
    request->block = allocate_span(request->bytes, request->alignment, &request->zeroed);
    return;
  }
  const SizeClass c = class_of(request->bytes);
  request->block = nullptr;
  give_out(request->heap->take(c, 1), c, &request->block);
}

// Some of the blocks that the client has freed go back to their heaps; how many.
uint32_t absorb(Client* client) {
  void* blocks[kQuantum];
  uint32_t count;
  {
    os::Guard guard(client->heap.lock);
    count = client->freed.pop(blocks, kQuantum);
  }
  SegregatedHeap::put_back(blocks, count);
  return count;
}

}  // namespace

// --- clients --------------------------------------------------------------------------------------------------------

Client* SupportCore::open(size_t bytes) {
  os::Guard guard(lock_);
  Client* client = pool_;
  if (client != nullptr) {
    pool_ = client->next_pooled;
    client->served_by.store(nullptr, std::memory_order_relaxed);  // another thread, perhaps in another cluster
  } else {
    client = new_client(bytes);
    if (client == nullptr) return nullptr;
    if (os::this_thread_forks()) {
      os::fork.hold(client->lease_lock);
      os::fork.hold(client->heap.lock);
    }
    client->next_of_all = all_.load(std::memory_order_relaxed);
    all_.store(client, std::memory_order_release);
  }
  ++open_clients_;
  return client;
}

void SupportCore::close(Client* client) {
  empty(client);
  os::Guard guard(lock_);
  client->next_pooled = pool_;
  pool_ = client;
  --open_clients_;
}

namespace {

size_t flush(SegregatedHeap* heap, bool makes_holes, const os::Stop& stop) {
  os::Guard holder(heap->lock);
  heap->flush();
  return makes_holes ? heap->make_holes(stop) : 0;
}

}  // namespace

size_t SupportCore::flush_heaps(bool makes_holes) {
  size_t holes = flush(&orphans, makes_holes, {});
  for (Client* client = clients(); client != nullptr; client = client->next_of_all)
    holes += flush(&client->heap, makes_holes, {});
  return holes;
}

bool SupportCore::sweep_idle_heaps(bool (*sleeps)(const Client*), bool (*stop)()) {
  constexpr uint64_t kFewChanges = 64;  // of a heap that is as good as idle
  size_t holes = 0;
  bool all = true;
  const auto sweep = [&](SegregatedHeap* heap, uint64_t few) {
    const os::Stop until{&heap->lock, stop};
    bool rested;
    if (heap->swept.wants(heap->changes(), few, &rested)) {
      holes += flush(heap, true, until);
      heap->swept.swept = rested && !until();
    }
    all = all && heap->swept.swept;
  };
  for (Client* client = clients(); client != nullptr && !stop(); client = client->next_of_all) {
    for (uint32_t i = 0; i < kFreedSlots && !stop() && absorb(client) > 0; ++i) continue;
    sweep(&client->heap, sleeps(client) ? UINT64_MAX : kFewChanges);
  }
  sweep(&orphans, kFewChanges);
  page_heap.note_purged(holes);
  return all && !stop();
}

bool SupportCore::all_heaps_rest() const {
  const auto rests = [](const SegregatedHeap& heap) { return heap.swept.rests(heap.changes()); };
  const Client* client = clients();
  while (client != nullptr && rests(client->heap)) client = client->next_of_all;
  return client == nullptr && rests(orphans);
}

void SupportCore::hold_locks_for_fork() {
  os::fork.hold(lock_);
  for (Client* client = clients(); client != nullptr; client = client->next_of_all) os::fork.hold(client->lease_lock);
  os::fork.hold(orphans.lock);
  for (Client* client = clients(); client != nullptr; client = client->next_of_all) os::fork.hold(client->heap.lock);
}

// --- for program threads --------------------------------------------------------------------------------------------

Batch help(Client* client, SizeClass c) {
  // Its own frees first: they may be what it asks for.
  if (!client->freed.empty()) absorb_all(client);
  const auto take = [client, c] {
    os::Guard guard(client->heap.lock);
    // First what the support core has put into the stash meanwhile: new blocks must be given out in order of address
    // (side_tables.h).
    if (const Batch batch = client->stash.take(c); batch.mask != 0) return batch;
    ++client->helped;
    // The stash was too small for what the thread takes.
    if (client->bypass == 0) {
      client->target[c] =
          static_cast<uint16_t>(std::clamp(2u * client->target[c], batch_of(c), target_limit(client, c)));
    }
    return client->heap.take(c, largest_batch(c, client->target[c]));
  };
  const Batch batch = take();
  if (batch.mask != 0) return batch;
  absorb_everything();  // memory is exhausted, but for what other clients have freed
  return take();
}

void absorb_all(Client* client) {
  while (absorb(client) > 0) {
  }
}

void absorb_everything() {
  for (Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) absorb_all(client);
}

namespace {

// The client gets no new batches.
void want_nothing(Client* client) {
  os::Guard guard(client->heap.lock);
  for (uint16_t& target : client->target) target = 0;
}

void flush(SegregatedHeap* heap) {
  os::Guard guard(heap->lock);
  heap->flush();
}

void empty_magazine(Client* client, SizeClass c) {
  (*client)[c].lift_floor();
  const Magazine magazine = (*client)[c];
  client->close(c);
  SegregatedHeap::put_back(magazine.ready_base, static_cast<uint32_t>(magazine.ready - magazine.ready_base));
  SegregatedHeap::put_back(magazine.returned_base, magazine.count_returned());
}

void empty_stash(Client* client, SizeClass c) {
  Batch& rest = client->rest[c];
  do {
    while (rest.mask != 0) {
      void* blocks[kLargestPart];
      SegregatedHeap::put_back(blocks, spread(rest.split(c), c, blocks));
    }
    rest = client->stash.take(c);
  } while (rest.mask != 0);
}

}  // namespace

void empty(Client* client) {
  want_nothing(client);
  absorb_all(client);
  client->widened = 0;
  for (SizeClass c = 0; c < kClasses; ++c) {
    empty_magazine(client, c);
    empty_stash(client, c);
  }
  flush(&client->heap);
}

bool empty_asleep(Client* client, bool (*barrier)(), const os::Stop& stop) {
  void** returned[kClasses];
  for (SizeClass c = 0; c < kClasses; ++c) returned[c] = __atomic_load_n(&(*client)[c].returned, __ATOMIC_ACQUIRE);
  if (!barrier()) return false;
  want_nothing(client);
  absorb_all(client);
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (stop()) return false;
    (*client)[c].take_asleep(returned[c], SegregatedHeap::put_back);
    empty_stash(client, c);
  }
  flush(&client->heap);
  return true;
}

void end_asleep(Client* client) {
  client->widened = 0;
  for (SizeClass c = 0; c < kClasses; ++c) empty_magazine(client, c);
}

void serve_request(Request* request) {
  switch (request->what) {
    case Request::What::kAllocate:
      if (request->heap == nullptr) {
        allocate(request);
      } else {
        os::Guard guard(request->heap->lock);
        allocate(request);
      }
      return;
    case Request::What::kRelease:
      return SegregatedHeap::put_back(&request->block, 1);
    case Request::What::kResize:
      if (!resize_span_in_place(as_span(block_or_die(request->block)), request->bytes)) request->block = nullptr;
      return;
  }
}

// --- for the support thread -----------------------------------------------------------------------------------------

void serve(Client* client) {
  const uint32_t activity = client->activity.load(std::memory_order_acquire);
  const bool more_to_fill = fill(client);
  const bool more_to_absorb = absorb(client) == kQuantum;
  // Where there may be more to do, wants() stays true.
  client->activity_seen.store(more_to_fill || more_to_absorb ? activity - 1 : activity, std::memory_order_relaxed);
}

bool answer(Client* client) {
  const bool mail = client->mailbox.has_request() && client->mailbox.answer(serve_request);
  const bool queued = client->queue.has_request() && client->queue.answer(client->heap.lock, allocate);
  return mail || queued;
}

}  // namespace annex::support
