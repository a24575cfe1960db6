// Large blocks of the hardened build: see guarded_span.h.
#include "harden/guarded_span.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/die.h"
#include "core/sample_points.h"
#include "harden/canary.h"
#include "os/guards.h"
#include "os/message.h"
#include "os/options.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex::harden {

constinit os::Lock waiting_spans_lock;

namespace {

constexpr size_t kLookedAt = 1024;

// What the program may use, and the canary.
size_t open_bytes(const Span* span) { return size_t{span->length} * kGranule; }
bool is_zeroed(const Span* span) { return open_bytes(span) <= kZeroedSpan; }
bool has_guards(const Span* span) { return span->before > 0; }
bool is_guarded(const Span* span) {
  const auto& kinds = span->guards;
  return !has_guards(span) || (kinds[0] != os::GuardKind::kNone && kinds[1] != os::GuardKind::kNone);
}
bool has_canary(const Span* span) { return open_bytes(span) - span->asked >= kCanaryBytes; }

// The span and its guards.
struct Range {
  char* start;
  size_t bytes;
};
Range before(const Span* span) {
  const size_t bytes = size_t{span->before} * kGranule;
  return {start_of(span) - bytes, bytes};
}
Range behind(const Span* span) { return {start_of(span) + open_bytes(span), kGranule}; }
Range whole(const Span* span) {
  const auto [start, bytes] = before(span);
  return {start, bytes + open_bytes(span) + (has_guards(span) ? kGranule : 0)};
}

void set_room(Span* span, size_t bytes) {
  span->asked = bytes;
  if (has_canary(span)) set_canary(start_of(span), bytes);
}
void check_canary(const Span* span) {
  const char* const start = start_of(span);
  if (has_canary(span) && !canary_stands(start, span->asked)) die(kWrittenBehind, start, span);
}

// Spans that are freed, in the order in which they were.
template <uint32_t most, size_t most_bytes>
class Waiting {
 public:
  // Calls leaves(span) for each that has to go for it.
  template <class Leaves>
  void put(Span* span, Leaves leaves) {
    bytes_ += open_bytes(span);
    while (count_ == most || (bytes_ > most_bytes && count_ > 0)) {
      if (Span* oldest = take_at(0)) leaves(oldest);
      first_ = (first_ + 1) % most;
      --count_;
    }
    place(count_++) = span;
  }

  // One of that length that has waited for long enough: while half of those that are here came.
  Span* take(uint32_t length) {
    for (uint32_t i = 0; i < count_ / 2; ++i) {
      if (place(i) != nullptr && place(i)->length == length) return take_at(i);
    }
    return nullptr;
  }

  Span* take_any() {
    for (uint32_t i = 0; i < count_; ++i) {
      if (Span* span = take_at(i)) return span;
    }
    count_ = 0;
    return nullptr;
  }

 private:
  Span*& place(uint32_t i) { return places_[(first_ + i) % most]; }
  Span* take_at(uint32_t i) {
    Span* span = std::exchange(place(i), nullptr);
    if (span != nullptr) bytes_ -= open_bytes(span);
    return span;
  }

  Span* places_[most] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;  // from the first to the last, those that were taken out of turn included
  size_t bytes_ = 0;
};

// Under the lock.
constinit Waiting<128, size_t{4} << 20> zeroed;
constinit Waiting<64, SIZE_MAX> unreadable;

// Zeroed ones that have waited for long enough and keep their guards, as making those again takes longer than all else.
// They keep their memory as far as the growth of the heap allows (pages/commitment.h).
class Ready {
 public:
  Span* take(uint32_t length) {
    Span*& first = first_[length];
    Span* span = first;
    if (span == nullptr) return nullptr;
    first = span->next;
    if (span->dirty) dirty_ -= open_bytes(span);
    return span;
  }
  void put(Span* span) {
    span->dirty = dirty_ + open_bytes(span) <=
                      std::max(commitment::kDirtySlack, page_heap.books.touched.load(std::memory_order_relaxed) / 8) ||
                  !os::purge(start_of(span), open_bytes(span));
    if (span->dirty) dirty_ += open_bytes(span);
    span->next = first_[span->length];
    first_[span->length] = span;
  }
  Span* take_any() {
    for (uint32_t length = 0; length <= kLongest; ++length) {
      if (Span* span = take(length)) return span;
    }
    return nullptr;
  }

 private:
  static constexpr uint32_t kLongest = kZeroedSpan / kGranule;
  Span* first_[kLongest + 1] = {};
  size_t dirty_ = 0;
};
constinit Ready ready;

// One that has waited is nobody's.
void end_waiting(Span* span, Kind kind) {
  if (std::atomic_ref<Kind>(span->kind).exchange(kind) != Kind::kSpanWaits) die(kFreedTwice, start_of(span), span);
}

// All of what the span was made of can be read and written again, or false.
bool remove_guards(const Span* span) {
  const os::GuardKind* kind = span->guards;
  for (const Range guard : {before(span), behind(span)}) {
    if (!os::remove_guard(*kind++, guard.start, guard.bytes)) return false;
  }
  const Range range = whole(span);
  return os::commit(range.start, range.bytes);
}

// `purged`: what is between the guards holds no memory.
void give_to_page_heap(Span* span, bool purged) {
  const Range range = whole(span);
  end_waiting(span, Kind::kSpan);
  // Where the system had refused a guard, its place may have been written to.
  const bool clean = purged && (is_guarded(span) || os::purge(range.start, range.bytes));
  if (has_guards(span) && !remove_guards(span)) return;  // it stays out of use
  if (clean) {
    page_heap.give_clean_span(span);
  } else {
    page_heap.give_span(span);
  }
}
void let_go(Span* span) {
  const bool discarded = !is_zeroed(span);
  if (discarded) os::advise_as_mapped(start_of(span), open_bytes(span));  // as around it: one mapping again
  give_to_page_heap(span, discarded);
}

Span* take_waiting(uint32_t length) {
  const bool small = length * kGranule <= kZeroedSpan;
  Span* span;
  {
    os::Guard guard(waiting_spans_lock);
    span = small ? zeroed.take(length) : unreadable.take(length);
    if (small && span == nullptr) span = ready.take(length);
  }
  if (span == nullptr) return nullptr;
  char* const start = start_of(span);
  if (!small && !os::commit(start, open_bytes(span))) {
    let_go(span);
    return nullptr;
  }
  end_waiting(span, Kind::kSpan);
  const char* const end = start + (small ? kLookedAt : 0);
  if (std::any_of(start, const_cast<char*>(end), [](char c) { return c != 0; })) die(kWrittenAfterFree, start, span);
  return span;
}

void tell_that_guards_are_short() {
  static constinit std::atomic<bool> told = false;
  if (!os::options.verbose || told.exchange(true, std::memory_order_relaxed)) return;
  os::warn("no mappings left for guards (vm.max_map_count): large blocks have gaps in their place");
}

Span* make(uint32_t length, uint32_t alignment) {
  const Run run = page_heap.take(
      {.granules = length, .use = Use::kSpan, .bytes = size_t{length} * kGranule, .alignment = alignment});
  if (run.head == nullptr) return nullptr;
  Span* const span = static_cast<Span*>(run.head);
  const bool zero = run.clean;
  char* const start = start_of(span);
  if (!zero && (is_zeroed(span) || !os::purge(start, open_bytes(span)))) memset(start, 0, open_bytes(span));
  if (has_guards(span)) {
    os::GuardKind* kind = span->guards;
    for (const Range guard : {before(span), behind(span)}) *kind++ = os::add_guard(guard.start, guard.bytes, zero);
    if (!is_guarded(span)) tell_that_guards_are_short();
  }
  return span;
}

}  // namespace

void* allocate_span(size_t bytes, size_t alignment) {
  const size_t open = (bytes + kGranule - 1) >> kGranuleShift;
  const size_t alignment_granules = std::max<size_t>(alignment >> kGranuleShift, 1);
  if (open + 2 * alignment_granules + 1 > kLongestRun) return nullptr;
  const uint32_t length = static_cast<uint32_t>(open);
  Span* span = alignment_granules == 1 ? take_waiting(length) : nullptr;
  if (span == nullptr) span = make(length, static_cast<uint32_t>(alignment_granules));
  if (span == nullptr && let_go_of_spans()) span = make(length, static_cast<uint32_t>(alignment_granules));
  if (span == nullptr) return nullptr;
  set_room(span, bytes);
  return start_of(span);
}

void free_span(Span* span) {
  if (std::atomic_ref<Kind>(span->kind).exchange(Kind::kSpanWaits) != Kind::kSpan)
    die(kFreedTwice, start_of(span), span);
  end_all_samples(span);
  check_canary(span);
  char* const start = start_of(span);
  const size_t open = open_bytes(span);
  const bool small = is_zeroed(span) && has_guards(span);
  if (small) {
    memset(start, 0, std::min(span->asked + kCanaryBytes, open));
  } else if (!has_guards(span) || !os::discard(start, open)) {
    // No mapping is left, or what is unreadable might not be to be had again: it goes back at once.
    return give_to_page_heap(span, os::purge(start, open));
  }
  Span* gone = nullptr;  // linked by `next`
  {
    os::Guard guard(waiting_spans_lock);
    if (small) {
      zeroed.put(span, [](Span* old) { ready.put(old); });
    } else {
      unreadable.put(span, [&](Span* old) { old->next = std::exchange(gone, old); });
    }
  }
  while (gone != nullptr) let_go(std::exchange(gone, gone->next));
  page_heap.purge_due_if_free(open);
}

bool resize_span(Span* span, size_t bytes) {
  check_canary(span);
  if (bytes > open_bytes(span) || bytes < open_bytes(span) / 2) return false;
  if (has_canary(span)) memset(start_of(span) + span->asked, 0, kCanaryBytes);
  set_room(span, bytes);
  return true;
}

bool let_go_of_spans() {
  bool any = false;
  for (;;) {
    Span* span;
    {
      os::Guard guard(waiting_spans_lock);
      span = zeroed.take_any();
      if (span == nullptr) span = ready.take_any();
      if (span == nullptr) span = unreadable.take_any();
    }
    if (span == nullptr) return any;
    any = true;
    let_go(span);
  }
}

}  // namespace annex::harden
