// The page heap's lock: see locked.h.
#include "pages/locked.h"

#include <linux/futex.h>

#include <atomic>
#include <climits>

#include "os/system_call.h"

namespace annex {

constinit os::Lock page_heap_lock;

namespace {

// With the lock held.
constinit Unlocked* first = nullptr;
constinit uint32_t count_of_all = 0;
constinit uint64_t last_number = 0;

// How many threads wait for one to end, with the lock held; and what they wait on: it changes with each end.
constinit uint32_t waiting = 0;
constinit std::atomic<uint32_t> ends{0};

void futex(int operation, uint32_t value) {
  os::system_call(SYS_futex, reinterpret_cast<long>(&ends), operation, static_cast<long>(value), 0);
}

}  // namespace

Unlocked::Unlocked(Locked&) : thread_(__builtin_thread_pointer()), number_(++last_number), next_(first) {
  first = this;
  ++count_of_all;
  page_heap_lock.unlock();
}

Unlocked::~Unlocked() {
  page_heap_lock.lock();
  Unlocked** link = &first;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  --count_of_all;
  if (waiting != 0) {
    ends.fetch_add(1, std::memory_order_relaxed);
    futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
}

uint32_t Unlocked::count(const Locked&) { return count_of_all; }

bool Unlocked::none_of_others() {
  for (const Unlocked* one = first; one != nullptr; one = one->next_) {
    if (!one->is_mine()) return false;
  }
  return true;
}

void Unlocked::wait_for_others(Locked&) {
  const auto another_until = [](uint64_t number) {
    for (const Unlocked* one = first; one != nullptr; one = one->next_) {
      if (!one->is_mine() && one->number_ <= number) return true;
    }
    return false;
  };
  ++waiting;
  for (const uint64_t number = last_number; another_until(number);) {
    const uint32_t seen = ends.load(std::memory_order_relaxed);
    page_heap_lock.unlock();
    futex(FUTEX_WAIT_PRIVATE, seen);
    page_heap_lock.lock();
  }
  if (waiting != 0) --waiting;  // 0 in the child of a fork in a handler that interrupted the wait
}

void Unlocked::forget_others() {
  waiting = 0;
  uint32_t kept = 0;
  for (Unlocked** link = &first; *link != nullptr;) {
    if ((*link)->is_mine()) {
      link = &(*link)->next_;
      ++kept;
    } else {
      *link = (*link)->next_;
    }
  }
  count_of_all = kept;
}

}  // namespace annex
