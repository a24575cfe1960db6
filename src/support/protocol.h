// How a program thread and the support core talk: by the stash, or by one of the papers' protocols, for comparison
// (ANNEX_PROTOCOL). They differ on the slow path only, and with the papers' magazines and stash stay empty:
//
//   stash       blocks are set aside ahead of demand (stash.h); the rest as with handshake
//   handshake   each call is a request that waits for its answer (NextGen-Malloc, Pseudo Code 1: mailbox.h)
//   queue       requests for small blocks, answers and frees pass through rings, and only malloc waits (SpeedMalloc
//               section 5.2: request_queue.h); the rest as with handshake
//
// Synchronization: the client's thread calls.
#pragma once

#include <cstdint>

#include "os/options.h"
#include "support/client.h"
#include "support/placement.h"
#include "support/request.h"

namespace annex::support {

inline bool by_stash() { return os::options.protocol == os::Protocol::kStash; }

// How long a program thread waits for an answer before it helps itself: some microseconds, in polls.
inline constexpr uint32_t kPolls = 200;

// True where the support core has answered. What goes through the queue is done under the heap's lock, and so may be
// nothing that takes other heaps' locks.
[[gnu::always_inline]] inline bool ask(Client* client, Request* request) {
  const bool queued = os::options.protocol == os::Protocol::kQueue && request->what == Request::What::kAllocate;
  return queued ? client->queue.ask(request, kPolls, client->heap.lock) : client->mailbox.ask(request, kPolls);
}

// Where the thread need not wait until a small block is freed: whether that is on its way. `client` may be nullptr.
inline bool send_freed(Client* client, void* block) {
  if (os::options.protocol != os::Protocol::kQueue || client == nullptr || !awake(client)) return false;
  if (client->freed.push(&block, 1) == 0) return false;
  client->note_activity();
  return true;
}

}  // namespace annex::support
