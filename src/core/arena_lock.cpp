// The arena lock, and letting go of it: see arena_lock.h.
#include "core/arena_lock.h"

#include <atomic>

namespace annex {

constinit os::Lock arena_lock;

namespace {

constinit LetGo* first = nullptr;
constinit std::atomic<uint32_t> count_of_all{0};  // written with the lock held

}  // namespace

LetGo::LetGo() : thread_(__builtin_thread_pointer()), next_(first) {
  first = this;
  count_of_all.fetch_add(1, std::memory_order_relaxed);
  arena_lock.unlock();
}

LetGo::~LetGo() {
  arena_lock.lock();
  LetGo** link = &first;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  count_of_all.fetch_sub(1, std::memory_order_relaxed);
}

uint32_t LetGo::count() { return count_of_all.load(std::memory_order_relaxed); }

bool LetGo::none_of_others() {
  for (const LetGo* one = first; one != nullptr; one = one->next_) {
    if (!one->is_mine()) return false;
  }
  return true;
}

void LetGo::forget_others() {
  uint32_t kept = 0;
  for (LetGo** link = &first; *link != nullptr;) {
    if ((*link)->is_mine()) {
      link = &(*link)->next_;
      ++kept;
    } else {
      *link = (*link)->next_;
    }
  }
  count_of_all.store(kept, std::memory_order_relaxed);
}

}  // namespace annex
