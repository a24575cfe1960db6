// The support core: see support_core.h.
#include "support/support_core.h"

#include <new>

#include "core/block.h"
#include "core/commitment.h"
#include "core/span.h"
#include "os/message.h"
#include "os/pages.h"

namespace annex::support {

constinit SupportCore support_core;

namespace {

// What lies in a class's stash is a small part of the heap.
uint32_t target_limit(SizeClass c) {
  const size_t share = commitment.touched.load(std::memory_order_relaxed) / 256;
  return std::clamp(static_cast<uint32_t>(share / (handful_of(c) * block_size(c))), 1u, stash_limit(c));
}

Client* new_client() {
  const size_t bytes = (sizeof(Client) + os::page_size() - 1) & ~(os::page_size() - 1);
  void* room = os::reserve(bytes, os::page_size());
  if (room == nullptr || !os::commit(room, bytes)) return nullptr;
  os::advise_huge(room, bytes, false);
  // Fresh pages are zero, and so is a new client: constructing it would touch all of them.
  return static_cast<Client*>(room);
}

}  // namespace

Client* SupportCore::open() {
  Client* client = pool_;
  if (client != nullptr) {
    pool_ = client->next_pooled;
    return client;
  }
  client = new_client();
  if (client == nullptr) return nullptr;
  ++clients_count;
  client->next_of_all = all_.load(std::memory_order_relaxed);
  all_.store(client, std::memory_order_release);
  return client;
}

void SupportCore::close(Client* client) {
  empty(client);
  client->next_pooled = pool_;
  pool_ = client;
}

void SupportCore::empty(Client* client) {
  absorb_all(client);
  for (SizeClass c = 0; c < kClasses; ++c) {
    Magazine& magazine = client->magazines[c];
    if (magazine.base != magazine.top) put(magazine.base, magazine.count());
    magazine = {};
    client->target[c] = 0;
    void* blocks[kLargestHandful];
    while (const uint32_t count = spread(client->stash.take(c), c, blocks)) put(blocks, count);
    client->taken_seen[c] = client->stash.taken(c);
  }
  heap_.flush();
}

Handful SupportCore::help(Client* client, SizeClass c) {
  ++helped;
  // Its own frees first: they may be what it asks for.
  if (!client->freed.empty()) absorb_all(client);
  // The stash was too small for what the thread takes.
  client->target[c] = static_cast<uint16_t>(std::clamp(2u * client->target[c], 1u, target_limit(c)));
  const Handful handful = heap_.take(c, handful_of(c));
  if (handful.mask != 0) return handful;
  absorb_everything();  // memory is exhausted, but for what is on its way
  return heap_.take(c, handful_of(c));
}

void* SupportCore::take_one(SizeClass c) {
  void* block = nullptr;
  spread(heap_.take(c, 1), c, &block);
  return block;
}

void SupportCore::put(void* const* blocks, uint32_t count) { heap_.put(blocks, count); }

uint32_t SupportCore::absorb(Client* client) {
  void* blocks[kQuantum];
  const uint32_t count = client->freed.pop(blocks, kQuantum);
  put(blocks, count);
  return count;
}

void SupportCore::absorb_all(Client* client) {
  while (absorb(client) > 0) {
  }
}

void SupportCore::absorb_everything() {
  for (Client* client = clients(); client != nullptr; client = client->next_of_all) absorb_all(client);
}

// A class whose stash is used is kept at its target; one that ran low gets a higher one. At most about kFill handfuls,
// so that whoever waits for the lock does not wait long; true where there may be more to do.
bool SupportCore::fill(Client* client) {
  uint32_t filled_up = 0;
  for (SizeClass c = 0; c < kClasses && filled_up < kFill; ++c) {
    uint32_t target = client->target[c];
    if (target == 0) continue;
    const uint32_t taken = client->stash.taken(c);
    if (taken == client->taken_seen[c] && client->stash.level(c) > 0) continue;
    const uint32_t used = taken - client->taken_seen[c];
    client->taken_seen[c] = taken;
    const uint32_t level = client->stash.level(c);
    if (used > target / 2 && level < target / 2 && target < target_limit(c)) {
      target = std::min(2 * target, target_limit(c));
      client->target[c] = static_cast<uint16_t>(target);
    }
    for (uint32_t i = level; i < target; ++i, ++filled_up) {
      const Handful handful = heap_.take(c, handful_of(c));
      if (handful.mask == 0) break;
      client->stash.put(c, handful);
    }
  }
  if (filled_up > 0) ++filled;
  return filled_up >= kFill;
}

void SupportCore::serve(Client* client) {
  const uint32_t activity = client->activity.load(std::memory_order_acquire);
  const bool more_to_fill = fill(client);
  const bool more_to_absorb = absorb(client) == kQuantum;
  // Where there may be more, the client is looked at again although nothing new happens there.
  client->activity_seen = more_to_fill || more_to_absorb ? activity - 1 : activity;
}

bool SupportCore::answer_requests() {
  bool any = false;
  for (Client* client = clients(); client != nullptr; client = client->next_of_all) {
    if (client->mailbox.asked()) any = client->mailbox.answer(serve_request) || any;
  }
  return any;
}

void serve_request(Request* request) {
  switch (request->what) {
    case Request::What::kAllocate:
      if (request->bytes <= kMaxSmall && request->alignment <= kMinAlignment) {
        os::Guard guard(support_core.lock);
        request->block = support_core.take_one(class_of(request->bytes));
      } else {
        request->block = allocate_span(request->bytes, request->alignment, &request->zeroed);
      }
      return;
    case Request::What::kRelease: {
      Granule* head = block_or_die(request->block);
      if (head->kind == Kind::kSpan) return free_span(head);
      os::Guard guard(support_core.lock);
      support_core.put(&request->block, 1);
      return;
    }
    case Request::What::kResize:
      if (!resize_span_in_place(block_or_die(request->block), request->bytes)) request->block = nullptr;
      return;
  }
}

}  // namespace annex::support
