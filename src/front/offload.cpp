// Offload: see offload.h.
#include "front/offload.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/block.h"
#include "core/die.h"
#include "core/holes.h"
#include "core/span.h"
#include "front/mapped_block.h"
#include "front/request.h"
#include "front/shared.h"
#include "front/thread_client.h"
#include "front/window_to_sample.h"
#include "os/all_threads.h"
#include "os/cpus.h"
#include "os/fork.h"
#include "os/forking.h"
#include "os/lock.h"
#include "os/options.h"
#include "pages/arena.h"
#include "pages/page_heap.h"
#include "pages/purger.h"
#include "support/cpu_pool.h"
#include "support/placement.h"
#include "support/protocol.h"
#include "support/support_core.h"

namespace annex::front {

using support::Client;
using support::Magazine;
using support::Request;
using support::support_core;

namespace {

// Where a thread can have none, what it allocates is the orphans'.
bool has_client() { return own_client() != nullptr || open_client(); }

// --- requests -------------------------------------------------------------------------------------------------------

// Lets the support core do it; or does it. A thread that forks does: the support thread may wait for its locks.
void ask(Request* request) {
  Client* client = own_client();
  const bool served = client != nullptr && support::attentive(client) && !os::this_thread_forks();
  if (served && support::ask(client, request)) return;
  support::serve_request(request);
  if (client != nullptr) support::note_demand(client);
}

// Last in whatever malloc does: makes the threads that are wanted. That allocates itself.
void start_helpers() {
  if (Client* client = own_client()) support::start_wanted(client);
  start_wanted_purger();
}

void* ask_for(size_t bytes, size_t alignment, bool* zeroed) {
  if (bytes > kMaxRequest || alignment > kMaxRequest - bytes || !page_heap.set_up()) return out_of_memory();
  Request request = {.what = Request::What::kAllocate, .bytes = bytes > 0 ? bytes : 1, .alignment = alignment};
  if (bytes <= kMaxSmall && alignment <= kMinAlignment) {
    Client* client = own_client();
    request.heap = client != nullptr ? &client->heap : &support_core.orphans;
  }
  ask(&request);
  if (request.block == nullptr) {  // exhausted, but for what is on its way
    support::absorb_everything();
    support::serve_request(&request);
  }
  if (request.block == nullptr) return out_of_memory();
  start_helpers();
  if (zeroed != nullptr) *zeroed = request.zeroed;
  return request.heap != nullptr ? unmarked(request.block) : request.block;
}

// --- stash ----------------------------------------------------------------------------------------------------------

// Opened only when it is needed: a class that the thread does not use costs it no page.
void open(ThreadClient* client, SizeClass c) {
  if ((*client)[c].room() != 0) return;
  const size_t from = support::kSlotsFrom<support::usual_limit>[c] + 1;
  (*client)[c].move(client->slots[0] + from, client->slots[1] + from, support::usual_limit(c));
}

// The magazine was empty when it was asked, or as good as that, and had overflowed before: it may hold twice as much,
// as long as what all wide ones may hold, of all threads, stays a small part of the heap.
void widen(ThreadClient* client, SizeClass c) {
  Magazine* magazine = &(*client)[c];
  magazine->overflowed = false;
  const uint32_t limit = std::min(2 * magazine->room(), support::widest_limit(c));
  const size_t share = page_heap.books.touched.load(std::memory_order_relaxed) / (12 * support_core.open_clients());
  const size_t more = 2 * (limit - magazine->room()) * block_size(c);  // in two stacks
  if (more == 0 || client->widened + more > share) return;
  void**& slots = client->wide_slots[c];
  if (slots == nullptr) slots = static_cast<void**>(page_heap.map_metadata(support::wide_slots_bytes(c)));
  if (slots == nullptr) return;
  client->widened += more;
  magazine->move(slots + 1, slots + 1 + support::widest_limit(c) + 1, limit);
}

[[gnu::always_inline]] inline support::Batch next_batch(Client* client, SizeClass c) {
  support::Batch batch = client->stash.take(c);
  if (batch.mask == 0) {
    batch = support::help(client, c);
    if (client->bypass == 0) support::note_demand(client);
  }
  if (client->bypass == 0) client->note_activity();
  return batch;
}

// For a magazine in which nothing is ready; false where memory is exhausted.
[[gnu::always_inline]] inline bool refill(ThreadClient* client, SizeClass c) {
  Magazine* magazine = &(*client)[c];
  open(client, c);
  if (magazine->count_returned() >= support::worthwhile(c)) return turn_over(magazine, c);
  if (magazine->blocks_wait()) return magazine->lower_floor(c);
  support::Batch& rest = client->rest[c];
  if (rest.mask == 0) {
    if (magazine->overflowed) widen(client, c);
    rest = next_batch(client, c);
    if (rest.mask == 0) return turn_over(magazine, c);
  }
  magazine->ready += support::give_out(rest.split(c), c, magazine->ready);
  // Not sooner: until then the support core may still write to that line.
  if (rest.mask == 0) client->stash.fetch(c);
  return true;
}

[[gnu::always_inline]] inline void* take_ready(ThreadClient* client, SizeClass c) {
  Magazine* magazine = &(*client)[c];
  return magazine->ready[-1] != nullptr || refill(client, c) ? *--magazine->ready : nullptr;
}

[[gnu::cold, gnu::noinline]] void* take_ready_to_sample(ThreadClient* client, SizeClass c) {
  WindowToSample window(client, c);
  void* const block = take_ready(client, c);
  if (block != nullptr) window.hand_out(block);
  return block;
}

void* allocate_from(ThreadClient* client, SizeClass c) {
  void* const block = samples_are_taken() ? take_ready_to_sample(client, c) : take_ready(client, c);
  return block != nullptr ? unmarked(block) : out_of_memory();
}

// Sends all of the older stack back; the younger one is still in the caches. Where the support core is slower than
// that, the thread does without it for a while: both at the same metadata would be slower still.
[[gnu::always_inline]] inline void send_older(Client* client, Magazine* magazine) {
  constexpr uint32_t kBypass = 256;
  const uint32_t count = magazine->count_returned();
  uint32_t sent = 0;
  if (client->bypass > 0) {
    --client->bypass;
  } else if (count > support::kFreedSlots / 2) {
    // So many at once cost little each, and are not sent only to be in the way of the rest.
  } else if (support::awake(client)) {
    sent = client->freed.push(magazine->returned_base, count);
    client->note_activity();
    if (sent < count) client->bypass = kBypass;
  } else {
    support::note_demand(client);
  }
  support::SegregatedHeap::put_back(magazine->returned_base + sent, count - sent);
  magazine->returned = magazine->returned_base;
}

[[gnu::always_inline]] inline void put_away(ThreadClient* client, SizeClass c, void* block) {
  Magazine* magazine = &(*client)[c];
  open(client, c);
  if (magazine->full()) turn_over(magazine, c);
  if (magazine->full()) {
    magazine->overflowed = true;
    send_older(client, magazine);
  }
  *magazine->returned++ = block;
}

[[gnu::cold, gnu::noinline]] void put_away_to_sample(ThreadClient* client, SizeClass c, void* block) {
  const WindowToSample window(client, c);
  put_away(client, c, block);
}

void put_into(ThreadClient* client, SizeClass c, void* block) {
  samples_are_taken() ? put_away_to_sample(client, c, block) : put_away(client, c, block);
}

void* allocate_small(SizeClass c) {
  if (has_client() && support::by_stash()) [[likely]] {
    void* block;
    {
      const OwnClient self;
      block = allocate_from(self.get(), c);
    }
    start_helpers();
    return block;
  }
  return ask_for(block_size(c), kMinAlignment, nullptr);
}

// --- the two ways ---------------------------------------------------------------------------------------------------

// The front end of a process with a core to spare.
struct WithSupportCore {
  static void* allocate_slow(size_t bytes) {
    return bytes <= kMaxSmall ? allocate_small(class_of(bytes)) : ask_for(bytes, kMinAlignment, nullptr);
  }

  static void* allocate_zeroed(size_t bytes) {
    if (bytes <= kMaxSmall) {
      void* block = Offload::allocate(bytes);
      return block == nullptr ? nullptr : memset(block, 0, bytes);
    }
    bool zeroed = false;
    void* block = ask_for(bytes, kMinAlignment, &zeroed);
    return block == nullptr || zeroed ? block : memset(block, 0, bytes);
  }

  static void* allocate_aligned(size_t alignment, size_t bytes) {
    const SizeClass c = aligned_class(alignment, bytes);
    return c < kClasses ? allocate_small(c) : ask_for(bytes, alignment, nullptr);
  }

  static void release_slow(void* address) {
    if (address == nullptr) return;
    const auto [c, key] = live_or_die(address);
    if (c < kClasses) mark_free(key, address);
    if (c < kClasses && has_client() && support::by_stash()) {
      const OwnClient self;
      return put_into(self.get(), c, address);
    }
    if (c < kClasses && support::send_freed(own_client(), address)) return;
    // Large blocks are waited for under every protocol, lest they pile up.
    Request request = {.what = Request::What::kRelease, .block = address};
    ask(&request);
  }

  static Found look_up(const void* block) {
    const SizeClass c = live_or_die(block).size_class;
    return c < kClasses ? Found{block_size(c), nullptr} : find(block);
  }

  static bool resize(Span* span, size_t bytes) {
    Request request = {.what = Request::What::kResize, .bytes = bytes, .block = start_of(span)};
    ask(&request);
    return request.block != nullptr;
  }

  static SamplePoints** sample_points() { return own_client() != nullptr ? &own_client()->points : nullptr; }

  static bool is_free_block(const Slab* slab, const void* block) {
    const os::UnseenBySanitizer unseen;
    return block_is_free(slab, support::key_beside_holes(support::map_word(block)), block);
  }

  static size_t give_back(bool holes) {
    if (own_client() != nullptr) {
      const OwnClient self;
      support::empty(self.get());
      forget_points(self.get());
    }
    if (holes) give_back_of_other_clients();
    support::absorb_everything();  // what other threads have freed, and no support thread has got to yet
    return page_heap.trim(support_core.flush_heaps(holes));
  }

  static HeapCounts count_heaps() {
    support::absorb_everything();
    HeapCounts counts;
    for (const Client* client = support_core.clients(); client != nullptr; client = client->next_of_all) {
      ++counts.heaps;
      counts.refills += client->helped.value();
    }
    counts.support_cpu_us = support::support_cpu_us();
    return counts;
  }

  static void hold_locks_for_fork() {
    support_core.hold_locks_for_fork();
    support::cpu_pool.hold_lock_for_fork();
  }

  static void after_fork_in_child() {
    if (Client* client = own_client()) client->mailbox.abandon();
    clients_after_fork_in_child();
    support::forget_support_threads_after_fork();
  }
};

enum class Way : uint8_t { kUndecided, kWithSupportCore, kShared };
constinit std::atomic<Way> way{Way::kUndecided};

// By the affinity mask alone: to read a cgroup's quota would cost every process. A protocol that was asked for is there
// to be measured, on however few CPUs.
[[gnu::noinline, gnu::cold]] void decide() {
  os::read_options();  // not under the lock, as libc is asked
  const Locked lock;
  if (way.load(std::memory_order_relaxed) != Way::kUndecided) return;
  const bool shared = support::by_stash() && os::allowed_cpus().count() < 2;
  if (!shared) {
    commit_side_tables = support::commit;
    purge_side_tables = support::purge_bitmaps;
  }
  way.store(shared ? Way::kShared : Way::kWithSupportCore, std::memory_order_release);
}

// Has the process's front end do something: asked in all that a front end does but the fast paths.
template <class Act>
[[gnu::always_inline]] inline auto on_its_way(Act act) {
  if (way.load(std::memory_order_acquire) == Way::kUndecided) [[unlikely]]
    decide();
  return way.load(std::memory_order_relaxed) == Way::kShared ? act(Shared{}) : act(WithSupportCore{});
}

}  // namespace

void* Offload::allocate_slow(size_t bytes) noexcept {
  return on_its_way([=](auto front) { return front.allocate_slow(bytes); });
}
void Offload::release_slow(void* block) noexcept {
  on_its_way([=](auto front) { front.release_slow(block); });
}
void* Offload::allocate_zeroed(size_t bytes) {
  return on_its_way([=](auto front) { return front.allocate_zeroed(bytes); });
}
void* Offload::allocate_aligned(size_t alignment, size_t bytes) {
  return on_its_way([=](auto front) { return front.allocate_aligned(alignment, bytes); });
}
Found Offload::look_up(const void* block) {
  return on_its_way([=](auto front) { return front.look_up(block); });
}
bool Offload::resize(Span* span, size_t bytes) {
  return on_its_way([=](auto front) { return front.resize(span, bytes); });
}
size_t Offload::give_back(bool holes) {
  return on_its_way([=](auto front) { return front.give_back(holes); });
}
HeapCounts Offload::count_heaps() {
  return on_its_way([](auto front) { return front.count_heaps(); });
}
SamplePoints** Offload::sample_points() {
  return on_its_way([](auto front) { return front.sample_points(); });
}
[[gnu::cold]] bool Offload::is_free_block(const Slab* slab, const void* block) {
  return on_its_way([=](auto front) { return front.is_free_block(slab, block); });
}
void Offload::start() {
  on_its_way([](auto) {});  // it is decided
}
void Offload::hold_locks_for_fork() {
  on_its_way([](auto front) { front.hold_locks_for_fork(); });
}
void Offload::after_fork_in_child() {
  on_its_way([](auto front) { front.after_fork_in_child(); });
}

}  // namespace annex::front
