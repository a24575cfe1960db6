// A thread's client: see thread_client.h.
#include "front/thread_client.h"

#include <sys/single_threaded.h>

#include "front/thread_exit.h"
#include "os/all_threads.h"
#include "os/lock.h"
#include "pages/page_heap.h"
#include "pages/purger.h"
#include "support/protocol.h"
#include "support/support_core.h"

namespace annex::front {

using support::support_core;

constinit support::Magazines no_magazines;
constinit thread_local support::Magazines* thread_magazines = &no_magazines;
constinit thread_local support::Magazines* own_magazines = &no_magazines;

namespace {

ThreadClient* first_client() { return static_cast<ThreadClient*>(support_core.clients()); }
ThreadClient* next_of_all(const ThreadClient* client) { return static_cast<ThreadClient*>(client->next_of_all); }

[[gnu::cold]] void leave_client(ThreadClient* client) {
  {
    const OwnClient self;
    const os::Guard guard(client->lease_lock);
    client->lease.end();
  }
  if (client->points != nullptr) client->points->labels = 0;
  forget_points(client);
  own_magazines = &no_magazines;
  thread_magazines = &no_magazines;
  support_core.close(client);
}

constinit ThreadExit<ThreadClient, leave_client> thread_exit;

// What a client holds whose thread does nothing with it now, which is then taken, but for one block of each class.
// Where there is a stop(), until that, or until another thread waits for the client. False where there may be more, or
// it can't be had.
[[gnu::cold]] bool give_back_of(ThreadClient* client, bool (*stop)()) {
  const os::Guard guard(client->lease_lock);
  const os::UnseenBySanitizer unseen;
  if (!client->lease.is_taken() &&
      !client->lease.take(client, 0, &no_magazines, 0, os::thread_exists, os::barrier_in_all_threads))
    return false;
  return support::empty_asleep(client, os::barrier_in_all_threads,
                               stop == nullptr ? os::Stop{} : os::Stop{&client->lease_lock, stop});
}

// A client is as good as idle where no more slow paths than half of this have been taken since the purger last looked.
constexpr uint64_t kIdle = 2048;

bool can_be_taken(const ThreadClient* client) { return client->lease.has_thread() && !os::barriers_ruled_out(); }

// For the purger. First what clients hold, since it is part of the heaps then.
[[gnu::cold]] bool sweep(bool (*stop)()) {
  bool all = true;
  for (ThreadClient* client = first_client(); client != nullptr && !stop(); client = next_of_all(client)) {
    bool rested;
    // Where it has not rested, the purger comes again.
    if (client->swept.wants(client->lease.steps(), kIdle, &rested)) {
      client->swept.swept = (give_back_of(client, stop) && rested) || !can_be_taken(client);
    }
    all = all && client->swept.swept;
  }
  const auto sleeps = [](const support::Client* of) { return static_cast<const ThreadClient*>(of)->lease.is_taken(); };
  return support_core.sweep_idle_heaps(sleeps, stop) && all;
}

[[gnu::cold]] bool all_rest() {
  const auto rests = [](const ThreadClient* of) {
    return of->swept.rests(of->lease.steps()) && (of->lease.is_taken() || !can_be_taken(of));
  };
  const ThreadClient* client = first_client();
  while (client != nullptr && rests(client)) client = next_of_all(client);
  return client == nullptr && support_core.all_heaps_rest();
}

constinit const Sweeper sweeper_of_clients = {sweep, all_rest};

}  // namespace

[[gnu::cold]] void take_client_back() {
  ThreadClient* const client = own_client();
  {
    const os::Guard guard(client->lease_lock);
    if (client->lease.come_back(client, 0)) support::end_asleep(client);
    forget_points(client);
  }
  wake_purger();
}

bool open_client() {
  if (thread_ends || !page_heap.set_up() || !thread_exit.has_key()) return false;
  ThreadClient* client = static_cast<ThreadClient*>(support_core.open(sizeof(ThreadClient)));
  if (client == nullptr) return false;
  sweeper.store(&sweeper_of_clients, std::memory_order_relaxed);
  page_heap.books.has_thread_heaps.store(true, std::memory_order_relaxed);
  own_magazines = client;
  thread_magazines = client;
  if (support::by_stash()) {
    const os::Guard guard(client->lease_lock);
    client->lease.begin(&thread_magazines, nullptr, os::thread_id());
  }
  wake_purger();
  return thread_exit.watch(client);
}

[[gnu::cold]] void give_back_of_other_clients() {
  if (!__libc_single_threaded) os::can_have_barriers();
  for (ThreadClient* client = first_client(); client != nullptr; client = next_of_all(client)) {
    if (client != own_client()) give_back_of(client, nullptr);
  }
}

[[gnu::cold]] void clients_after_fork_in_child() {
  for (ThreadClient* client = first_client(); client != nullptr; client = next_of_all(client)) {
    if (client == own_client()) {
      client->lease.note_thread(os::thread_id());
    } else {
      client->lease.end();
    }
  }
}

}  // namespace annex::front
