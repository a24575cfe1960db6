// The page heap's lock: see locked.h.
#include "pages/locked.h"

namespace annex {

constinit os::Lock page_heap_lock;

namespace {

// With the lock held.
constinit Unlocked* first = nullptr;
constinit uint32_t count_of_all = 0;

}  // namespace

Unlocked::Unlocked(Locked&) : thread_(__builtin_thread_pointer()), next_(first) {
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
}

uint32_t Unlocked::count(const Locked&) { return count_of_all; }

bool Unlocked::none_of_others() {
  for (const Unlocked* one = first; one != nullptr; one = one->next_) {
    if (!one->is_mine()) return false;
  }
  return true;
}

void Unlocked::forget_others() {
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
