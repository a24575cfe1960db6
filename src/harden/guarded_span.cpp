// Large blocks of the hardened build: see guarded_span.h.
#include "harden/guarded_span.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/commitment.h"
#include "core/die.h"
#include "core/runs.h"
#include "harden/canary.h"
#include "os/guards.h"
#include "os/message.h"
#include "os/options.h"
#include "os/pages.h"

namespace annex::harden {

constinit os::Lock waiting_spans_lock;

namespace {

constexpr size_t kLookedAt = 1024;

// What the program may use, and the canary.
size_t open_bytes(const Granule* head) { return size_t{head->length} * kGranule; }
bool is_zeroed(const Granule* head) { return open_bytes(head) <= kZeroedSpan; }
bool has_guards(const Granule* head) { return head->span.before > 0; }
bool is_guarded(const Granule* head) {
  const auto& kinds = head->span.guards;
  return !has_guards(head) || (kinds[0] != os::GuardKind::kNone && kinds[1] != os::GuardKind::kNone);
}
bool has_canary(const Granule* head) { return open_bytes(head) - head->span.asked >= kCanaryBytes; }

// The span and its guards.
struct Range {
  char* start;
  size_t bytes;
};
Range before(const Granule* head) {
  const size_t bytes = size_t{head->span.before} * kGranule;
  return {start_of(head) - bytes, bytes};
}
Range behind(const Granule* head) { return {start_of(head) + open_bytes(head), kGranule}; }
Range whole(const Granule* head) {
  const auto [start, bytes] = before(head);
  return {start, bytes + open_bytes(head) + (has_guards(head) ? kGranule : 0)};
}

void set_room(Granule* head, size_t bytes) {
  head->span.asked = bytes;
  if (has_canary(head)) set_canary(start_of(head), bytes);
}
void check_canary(const Granule* head) {
  const char* const start = start_of(head);
  if (has_canary(head) && !canary_stands(start, head->span.asked)) die(kWrittenBehind, start);
}

// Spans that are freed, in the order in which they were.
template <uint32_t most, size_t most_bytes>
class Waiting {
 public:
  // Calls leaves(head) for each that has to go for it.
  template <class Leaves>
  void put(Granule* head, Leaves leaves) {
    bytes_ += open_bytes(head);
    while (count_ == most || (bytes_ > most_bytes && count_ > 0)) {
      if (Granule* oldest = take_at(0)) leaves(oldest);
      first_ = (first_ + 1) % most;
      --count_;
    }
    place(count_++) = head;
  }

  // One of that length that has waited for long enough: while half of those that are here came.
  Granule* take(uint32_t length) {
    for (uint32_t i = 0; i < count_ / 2; ++i) {
      if (place(i) != nullptr && place(i)->length == length) return take_at(i);
    }
    return nullptr;
  }

  Granule* take_any() {
    for (uint32_t i = 0; i < count_; ++i) {
      if (Granule* head = take_at(i)) return head;
    }
    count_ = 0;
    return nullptr;
  }

 private:
  Granule*& place(uint32_t i) { return places_[(first_ + i) % most]; }
  Granule* take_at(uint32_t i) {
    Granule* head = std::exchange(place(i), nullptr);
    if (head != nullptr) bytes_ -= open_bytes(head);
    return head;
  }

  Granule* places_[most] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;  // from the first to the last, those that were taken out of turn included
  size_t bytes_ = 0;
};

// Under the lock.
constinit Waiting<128, size_t{4} << 20> zeroed;
constinit Waiting<64, SIZE_MAX> unreadable;

// Zeroed ones that have waited for long enough and keep their guards, as making those again takes longer than all else.
// They keep their memory as far as the growth of the heap allows (core/commitment.h).
class Ready {
 public:
  Granule* take(uint32_t length) {
    Granule*& first = first_[length];
    Granule* head = first;
    if (head == nullptr) return nullptr;
    first = head->next;
    if (head->dirty) dirty_ -= open_bytes(head);
    return head;
  }
  void put(Granule* head) {
    head->dirty =
        dirty_ + open_bytes(head) <= std::max(kDirtySlack, commitment.touched.load(std::memory_order_relaxed) / 8) ||
        !os::purge(start_of(head), open_bytes(head));
    if (head->dirty) dirty_ += open_bytes(head);
    head->next = first_[head->length];
    first_[head->length] = head;
  }
  Granule* take_any() {
    for (uint32_t length = 0; length <= kLongest; ++length) {
      if (Granule* head = take(length)) return head;
    }
    return nullptr;
  }

 private:
  static constexpr uint32_t kLongest = kZeroedSpan / kGranule;
  Granule* first_[kLongest + 1] = {};
  size_t dirty_ = 0;
};
constinit Ready ready;

// One that has waited is nobody's.
void end_waiting(Granule* head, Kind kind) {
  if (std::atomic_ref<Kind>(head->kind).exchange(kind) != Kind::kSpanWaits) die(kFreedTwice, start_of(head));
}

// All of what the span was made of can be read and written again, or false.
bool remove_guards(const Granule* head) {
  const os::GuardKind* kind = head->span.guards;
  for (const Range guard : {before(head), behind(head)}) {
    if (!os::remove_guard(*kind++, guard.start, guard.bytes)) return false;
  }
  const Range range = whole(head);
  return os::commit(range.start, range.bytes);
}

// To the arena. `purged`: what is between the guards holds no memory.
void give_back(Granule* head, bool purged) {
  const Range range = whole(head);
  end_waiting(head, Kind::kSpan);
  // Where the system had refused a guard, its place may have been written to.
  const bool clean = purged && (is_guarded(head) || os::purge(range.start, range.bytes));
  if (!has_guards(head) || remove_guards(head)) give_span_run(head, clean);  // else it stays out of use
}
void let_go(Granule* head) {
  const bool discarded = !is_zeroed(head);
  if (discarded) os::advise_as_mapped(start_of(head), open_bytes(head));  // as around it: one mapping again
  give_back(head, discarded);
}

Granule* take_waiting(uint32_t length) {
  const bool small = length * kGranule <= kZeroedSpan;
  Granule* head;
  {
    os::Guard guard(waiting_spans_lock);
    head = small ? zeroed.take(length) : unreadable.take(length);
    if (small && head == nullptr) head = ready.take(length);
  }
  if (head == nullptr) return nullptr;
  char* const start = start_of(head);
  if (!small && !os::commit(start, open_bytes(head))) {
    let_go(head);
    return nullptr;
  }
  end_waiting(head, Kind::kSpan);
  const char* const end = start + (small ? kLookedAt : 0);
  if (std::any_of(start, const_cast<char*>(end), [](char c) { return c != 0; })) die(kWrittenAfterFree, start);
  return head;
}

void tell_that_guards_are_short() {
  static constinit std::atomic<bool> told = false;
  if (!os::options.verbose || told.exchange(true, std::memory_order_relaxed)) return;
  os::warn("no mappings left for guards (vm.max_map_count): large blocks have gaps in their place");
}

Granule* make(uint32_t length, uint32_t alignment) {
  bool zero = false;
  Granule* head = take_span_run(length, alignment, size_t{length} * kGranule, &zero);
  if (head == nullptr) return nullptr;
  char* const start = start_of(head);
  if (!zero && (is_zeroed(head) || !os::purge(start, open_bytes(head)))) memset(start, 0, open_bytes(head));
  if (has_guards(head)) {
    os::GuardKind* kind = head->span.guards;
    for (const Range guard : {before(head), behind(head)}) *kind++ = os::add_guard(guard.start, guard.bytes, zero);
    if (!is_guarded(head)) tell_that_guards_are_short();
  }
  return head;
}

}  // namespace

void* allocate_span(size_t bytes, size_t alignment) {
  const size_t open = (bytes + kGranule - 1) >> kGranuleShift;
  const size_t alignment_granules = std::max<size_t>(alignment >> kGranuleShift, 1);
  if (open + 2 * alignment_granules + 1 > kLongestRun) return nullptr;
  const uint32_t length = static_cast<uint32_t>(open);
  Granule* head = alignment_granules == 1 ? take_waiting(length) : nullptr;
  if (head == nullptr) head = make(length, static_cast<uint32_t>(alignment_granules));
  if (head == nullptr && let_go_of_spans()) head = make(length, static_cast<uint32_t>(alignment_granules));
  if (head == nullptr) return nullptr;
  set_room(head, bytes);
  return start_of(head);
}

void free_span(Granule* head) {
  if (std::atomic_ref<Kind>(head->kind).exchange(Kind::kSpanWaits) != Kind::kSpan) die(kFreedTwice, start_of(head));
  check_canary(head);
  char* const start = start_of(head);
  const size_t open = open_bytes(head);
  const bool small = is_zeroed(head) && has_guards(head);
  if (small) {
    memset(start, 0, std::min(head->span.asked + kCanaryBytes, open));
  } else if (!has_guards(head) || !os::discard(start, open)) {
    // No mapping is left, or what is unreadable might not be to be had again: it goes back at once.
    return give_back(head, os::purge(start, open));
  }
  Granule* gone = nullptr;  // linked by `next`
  {
    os::Guard guard(waiting_spans_lock);
    if (small) {
      zeroed.put(head, [](Granule* old) { ready.put(old); });
    } else {
      unreadable.put(head, [&](Granule* old) { old->next = std::exchange(gone, old); });
    }
  }
  while (gone != nullptr) let_go(std::exchange(gone, gone->next));
  give_back_some(open);
}

bool resize_span(Granule* head, size_t bytes) {
  check_canary(head);
  if (bytes > open_bytes(head) || bytes < open_bytes(head) / 2) return false;
  if (has_canary(head)) memset(start_of(head) + head->span.asked, 0, kCanaryBytes);
  set_room(head, bytes);
  return true;
}

bool let_go_of_spans() {
  bool any = false;
  for (;;) {
    Granule* head;
    {
      os::Guard guard(waiting_spans_lock);
      head = zeroed.take_any();
      if (head == nullptr) head = ready.take_any();
      if (head == nullptr) head = unreadable.take_any();
    }
    if (head == nullptr) return any;
    any = true;
    let_go(head);
  }
}

}  // namespace annex::harden
