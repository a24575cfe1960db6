// The page heap's door, and its accounts: see page_heap.h.
#include "pages/page_heap.h"

#include <algorithm>
#include <cstring>

#include "os/clock.h"
#include "os/options.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/heap_limit.h"
#include "pages/secret.h"

namespace annex {

constinit PageHeap page_heap;

namespace {

constexpr size_t kSmallestArena = 2 * kHugePage;
constexpr size_t kLargestArena = size_t{kLongestRun / 2} * kGranule;

}  // namespace

// Each further one has twice the room, so that a small ANNEX_RESERVE is no limit. Half of what there is stays for the
// metadata, and for more.
size_t PageHeap::standard_arena() {
  const size_t most = os::kRoomIsReserved ? size_t{64} << 30 : os::largest_room() / 2;
  const size_t first = std::min(os::options.reserve_bytes, most);
  const size_t doubled = std::min<size_t>(first, kLargestArena >> arena_count) << arena_count;
  return std::max(std::min(round_up(doubled, kHugePage), most / kHugePage * kHugePage), kSmallestArena);
}

bool PageHeap::set_up() {
  os::read_options();  // and with it what libc is asked, which others may stand before
  const Locked lock;
  return set_up(lock);
}

bool PageHeap::set_up(const Locked&) {
  if (arena_count > 0) return true;
  if (kByChance) secret.draw();
  if (kGuards) os::set_guard_budget();
  free_.count_dirty_in(&books.dirty);
  books.addresses_are_scarce = os::address_space_limit() != SIZE_MAX || os::data_limit() != SIZE_MAX;
  return add_arena(standard_arena(), &books) != nullptr;
}

// --- accounts --------------------------------------------------------------------------------------------------------

// For a moment the old place of what is moved counts as well as the new one, which is no peak.
void PageHeap::account_moved(size_t bytes, Use use) {
  books.live += bytes;
  if (use != Use::kSpan) return;
  books.spans += bytes;
  books.note_touched(bytes);
}

void PageHeap::account_taken(size_t bytes, Use use) {
  account_moved(bytes, use);
  if (books.live > books.peak) books.peak = books.live;
  books.needed.note(books.live);
}

void PageHeap::account_given(size_t bytes, Use use) {
  books.live -= bytes;
  if (use != Use::kSpan) return;
  books.spans -= bytes;
  books.note_untouched(bytes);
}

// --- taking ----------------------------------------------------------------------------------------------------------

// Whatever a walk reads; all else of the record is zero.
// (Both ends of what was found say how long it is.)
Granule* PageHeap::begin(Granule* head, const Want& want) {
  memset(reinterpret_cast<char*>(head) + sizeof(GranuleFields), 0, sizeof(Granule) - sizeof(GranuleFields));
  head->limit = 0;
  head->size_class = want.size_class;
  if (want.use == Use::kSpan) {
    Span* const span = static_cast<Span*>(head);
    span->bytes = want.bytes;
    span->kind = Kind::kSpan;
    return span;
  }
  head->kind = Kind::kSlab;
  for (uint32_t i = 1; i < want.granules; ++i) {
    head[i].kind = Kind::kSlabTail;
    head[i].back = static_cast<uint8_t>(i);
    head[i].limit = 0;
  }
  return head;
}

Run PageHeap::take(const Want& want, uint32_t more, Spares* spares) {
  if (!page_heap_lock.try_lock()) {
    if (Granule* run = want.use != Use::kSpan && want.granules == 1 ? transfer_cache_.take() : nullptr) {
      run->size_class = want.size_class;
      return {run, false};
    }
    page_heap_lock.lock();
  }
  Locked lock{Locked::Already{}};
  const Run run = take(lock, want);
  if (run.head == nullptr || !run.clean) return run;
  if (want.use != Use::kSpan) {
    if (want.granules == 1) take_spares(lock, want, more, spares);
    leave_one_out(lock);
  } else if (want.granules >= kGranulesPerHugePage) {
    watch(static_cast<Span*>(run.head));
  }
  // Last of all, as it lets go of the lock: what is dirty and due has not been of use to this one, and so goes back.
  if (something_may_be_due(lock)) purge_due(lock, os::now_ms(), want.granules * kGranule);
  return run;
}

Run PageHeap::take(Locked& lock, const Want& want) {
  if (!set_up(lock)) return {};
  uint32_t before = 0;
  const uint32_t granules = guarded_granules(want, &before);
  const size_t bytes = size_t{granules} * kGranule;
  if (!commitment::limit_allows(books, bytes) &&
      !(empty_transfer_cache(lock) && commitment::limit_allows(books, bytes))) {
    heap_limit_refuses();
    return {};
  }
  // Finding one may let go of the lock for a while, in which others must not be promised the same bytes.
  books.promised += bytes;
  Run run = find(lock, want, granules);
  books.promised -= bytes;
  if (run.head == nullptr) return {};
  if (before > 0) run.head = put_guards_around(run.head, before, want.granules);
  account_taken(size_t{want.granules} * kGranule, want.use);
  begin(run.head, want);
  if (before > 0) static_cast<Span*>(run.head)->before = before;
  if (!books.purger_runs && commitment::purger_is_useful(books) &&
      (books.purger_again_ms == 0 || os::now_ms() >= books.purger_again_ms)) {
    books.purger_runs = true;
    books.purger_wanted.store(true, std::memory_order_relaxed);
    books.slow_path_called.store(true, std::memory_order_relaxed);
  }
  return run;
}

// Fewer where the arena would have to grow for more, and none where the heap has a limit, of which other threads may
// need the rest.
void PageHeap::take_spares(const Locked&, const Want& want, uint32_t count, Spares* spares) {
  if (os::options.max_heap_bytes != 0) return;
  for (; count > 0; --count) {
    Granule* const run = find_clean(1);
    if (run == nullptr) break;
    account_taken(kGranule, want.use);
    spares->runs[spares->count++] = begin(run, want);
  }
}

// Whether a span has been written all over, as far as 16 of its pages say.
bool PageHeap::is_filled(const Span* span, bool is_written(const void* page)) {
  constexpr size_t kLook = 16;  // pages
  const char* const start = start_of(span);
  const size_t step = span->bytes / kLook;
  size_t written = 0;
  while (written < kLook && is_written(start + written * step + step / 2)) ++written;
  return written == kLook;
}

// Before a span of fresh memory is made. The watched one may be in use: what it does not say yet, it may say later.
void PageHeap::look_at_watched(const Locked&) {
  if (books.filled || books.watched_span == nullptr) return;
  books.filled = is_filled(books.watched_span, os::begins_written);
}

// A span of fresh memory has been made. The one that is watched is left for it when that one stays for long: of a
// program that has some alive the last one is seldom the next to be freed.
void PageHeap::watch(const Span* span) {
  constexpr uint32_t kPatience = 32;
  if (books.watched_span != nullptr && ++books.made_since < kPatience) return;
  books.watched_span = span;
  books.made_since = 0;
}

Span* PageHeap::take_to_move_into(uint32_t kept, uint32_t granules, size_t bytes) {
  Locked lock;
  // What is moved is not taken: neither the limit nor the peak sees it twice.
  const size_t more = size_t{granules - kept} * kGranule;
  if (!commitment::limit_allows(books, more)) return nullptr;
  books.promised += more;
  Granule* const run = gather_behind(lock, kept, granules);
  books.promised -= more;
  if (run == nullptr) return nullptr;
  account_taken(more, Use::kSpan);
  account_moved(size_t{kept} * kGranule, Use::kSpan);
  Span* const span = static_cast<Span*>(begin(run, {.granules = granules, .use = Use::kSpan, .bytes = bytes}));
  watch(span);
  return span;
}

// --- giving ----------------------------------------------------------------------------------------------------------

// What was in use is nobody's any more; nothing inside of it may look like a slab.
Granule* PageHeap::end_use(Granule* head, uint32_t granules) {
  const Use use = head->kind == Kind::kSlab ? Use::kSlab : Use::kSpan;
  for (uint32_t i = 1; use == Use::kSlab && i < granules; ++i) head[i].kind = Kind::kNone;
  account_given(size_t{granules} * kGranule, use);
  set_ends(head, granules, Kind::kTaken);
  return head;
}

// What is in the transfer cache becomes free. False where there is nothing.
bool PageHeap::empty_transfer_cache(const Locked&) {
  Granule* run = transfer_cache_.take();
  if (run == nullptr) return false;
  const uint64_t now = os::now_ms();
  for (; run != nullptr; run = transfer_cache_.take()) free_.put(end_use(run, 1), 1, FreeState::kDirty, now);
  return true;
}

void PageHeap::give_slab(Granule* slab) {
  const uint32_t granules = slab->length;
  const uint64_t now = os::now_ms();  // not under the lock: it may be a system call
  if (!page_heap_lock.try_lock()) {
    if (granules == 1 && transfer_cache_.put(slab)) return;
    page_heap_lock.lock();
  }
  Locked lock{Locked::Already{}};
  free_.put(end_use(slab, granules), granules, FreeState::kDirty, now);
  if (now >= emptied_ms_ + kEmptyAfterMs) {
    emptied_ms_ = now;
    empty_transfer_cache(lock);
  }
  purge_due(lock, now, granules * kGranule);
}

void PageHeap::give(Span* span, bool clean, const Span* moved_to) {
  uint32_t granules = span->length;
  const uint64_t now = clean ? 0 : os::now_ms();  // not under the lock: it may be a system call
  Locked lock;
  if (span == books.watched_span) {
    if (!clean) books.filled = is_filled(span, os::is_written);
    books.watched_span = nullptr;
  }
  if (moved_to != nullptr) arena_of_run(moved_to).note_moved(span, moved_to, granules, &books);
  if (span->tail_unmapped && !map_tail(span)) return give_without_tail(span);
  Granule* head = end_use(span, granules);
  if (span->before > 0) head = without_guards(span, &granules);
  free_.put(head, granules, clean ? FreeState::kClean : FreeState::kDirty, now);
  if (!clean) purge_due(lock, now, granules * kGranule);
}

void PageHeap::give(Spares* spares) {
  if (spares->count == 0) return;
  const uint64_t now = os::now_ms();
  const Locked lock;
  // Memory may be behind them, of a huge page that is none any more (purge.cpp: end_huge).
  const FreeState state = books.huge_ended > 0 ? FreeState::kDirty : FreeState::kClean;
  while (spares->count > 0) free_.put(end_use(spares->runs[--spares->count], 1), 1, state, now);
}

// --- in place --------------------------------------------------------------------------------------------------------

bool PageHeap::resize(Span* span, size_t bytes) {
  Locked lock;
  if (span->tail_unmapped && !map_tail(span)) return false;
  const uint32_t before = span->length;
  const uint32_t granules = static_cast<uint32_t>(granules_for(bytes));
  if (granules > before) {
    if (!lengthen(lock, span, granules, bytes)) return false;
  } else if (granules < before) {
    set_length(span, granules);
    account_given(size_t{before - granules} * kGranule, Use::kSpan);
    Granule* const rest = span + granules;
    rest->arena = span->arena;
    set_ends(rest, before - granules, Kind::kTaken);
    const uint64_t now = os::now_ms();
    free_.put(rest, before - granules, FreeState::kDirty, now);
    span->bytes = bytes;
    purge_due(lock, now, (before - granules) * kGranule);
    return true;
  }
  span->bytes = bytes;
  return true;
}

// Of a span whose granules are one run by now.
void PageHeap::set_length(Span* span, uint32_t granules) {
  Granule* const last = span + granules - 1;
  last->kind = granules == 1 ? Kind::kSpan : Kind::kTaken;
  last->length = span->length = granules;
}

bool PageHeap::lengthen(Locked& lock, Span* span, uint32_t granules, size_t bytes) {
  const uint32_t missing = granules - span->length;
  const size_t more = size_t{missing} * kGranule;
  if (!commitment::limit_allows(books, more)) return false;
  const Run following =
      find_at(span + span->length, missing, commitment::span_wants_huge_pages(books, bytes), arena_of_run(span));
  if (following.head == nullptr) return false;
  if (following.clean) {
    books.promised += more;
    before_growth(lock, more);
    books.promised -= more;
  }
  account_taken(more, Use::kSpan);
  set_length(span, granules);
  return true;
}

size_t PageHeap::count_dirty_runs(const Locked&) const {
  size_t count = 0;
  for (const FreeRun* run = free_.oldest(); run != nullptr; run = run->newer) ++count;
  return count;
}

bool PageHeap::end_huge_pages(Granule* run, uint32_t granules) {
  const Locked lock;
  end_huge_around(lock, run, granules);
  return books.huge > 0 || books.huge_ended > 0;
}

// --- all of it -------------------------------------------------------------------------------------------------------

size_t PageHeap::trim(size_t of_slabs) {
  Locked lock;
  empty_transfer_cache(lock);
  Unlocked::wait_for_others(lock);  // they may be giving back what has just been freed
  const size_t bytes = of_slabs + purge_all(lock);
  books.purged_total += of_slabs;
  for (uint32_t i = 0; i < arena_count; ++i) trim(arenas[i]);
  if (purge_side_tables != nullptr) purge_side_tables(lock);
  return bytes;
}

}  // namespace annex
