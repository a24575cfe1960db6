// Arenas: see arena.h.
#include "core/arena.h"

#include <algorithm>

#include "core/commitment.h"
#include "os/clock.h"
#include "os/message.h"
#include "os/options.h"
#include "os/pages.h"
#include "os/random.h"

namespace annex {

constinit Reach primary = {nullptr, 0};
constinit os::Lock arena_lock;
constinit Arena arenas[kMaxArenas];
constinit uint32_t arena_count = 0;

namespace {

constexpr size_t kMetadataStep = 64 * 1024;  // committed at a time: the books of 64 MiB
constexpr size_t kSmallestArena = 2 * kHugePage;
constexpr size_t kLargestArena = size_t{kLongestRun / 2} * kGranule;
constexpr size_t kAddressSpaceShare = 8;  // under RLIMIT_AS an arena takes an eighth of what is allowed

constexpr size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) & ~(multiple - 1); }
constexpr uint32_t round_up(uint32_t value, uint32_t multiple) { return (value + multiple - 1) & ~(multiple - 1); }

}  // namespace

bool Arena::reserve(size_t bytes) {
  base_ = static_cast<char*>(os::reserve(bytes, kHugePage));
  if (base_ == nullptr) return false;
  bytes_ = bytes;
  first_ = static_cast<uint32_t>(metadata_bytes(bytes) / kGranule);
  frontier_ = committed_ = first_;
  commitment.reserved += bytes;
  return true;
}

// Makes memory and metadata usable up to a new frontier.
bool Arena::commit_to(uint32_t frontier) {
  const uint32_t all = static_cast<uint32_t>(bytes_ / kGranule);
  if (frontier > all) return false;
  const size_t metadata = std::min(round_up(frontier * sizeof(Granule), kMetadataStep), metadata_bytes(bytes_));
  if (metadata > metadata_committed_) {
    if (!os::commit(base_ + metadata_committed_, metadata - metadata_committed_)) return false;
    commitment.metadata += metadata - metadata_committed_;
    commitment.committed += metadata - metadata_committed_;
    __atomic_store_n(&metadata_committed_, metadata, __ATOMIC_RELAXED);
    if (this == &arenas[0]) {
      __atomic_store_n(&primary.bytes, metadata / sizeof(Granule) * kGranule, __ATOMIC_RELAXED);
    }
  }
  if (commit_books != nullptr && !commit_books(*this, frontier)) return false;
  if (frontier > committed_) {
    const size_t step = commit_step(size_t{committed_ - first_} * kGranule) / kGranule;
    uint32_t target = static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(frontier, committed_ + step), all));
    char* start = base_ + size_t{committed_} * kGranule;
    if (!os::commit(start, size_t{target - committed_} * kGranule)) {
      target = frontier;  // perhaps just what is needed can still be had
      if (!os::commit(start, size_t{target - committed_} * kGranule)) return false;
    }
    commitment.committed += size_t{target - committed_} * kGranule;
    committed_ = target;
  }
  return true;
}

Granule* Arena::granule_checked(const void* address) const {
  Granule* granule = granule_at(address);
  const size_t committed = __atomic_load_n(&metadata_committed_, __ATOMIC_RELAXED);
  return reinterpret_cast<char*>(granule + 1) <= base_ + committed ? granule : nullptr;
}

// --- free runs ------------------------------------------------------------------------------------------------------

// Out of the books, whole.
void Arena::take_out(Granule* run) {
  if (run->dirty) {
    dirty_.remove(run);
    age_remove(run);
    commitment.dirty -= size_t{run->length} * kGranule;
  } else {
    clean_.remove(run);
  }
  run->kind = Kind::kNone;
  run[run->length - 1].kind = Kind::kNone;
}

// Takes the first granules of a free run; the rest stays free, as old as it was.
void Arena::take_front(Granule* run, uint32_t granules) {
  const uint32_t rest = run->length - granules;
  if (rest == 0) {
    take_out(run);
    return;
  }
  Granule* remainder = run + granules;
  Granule* last = run + run->length - 1;
  const bool dirty = run->dirty;
  RunBins& bins = dirty ? dirty_ : clean_;
  bins.remove(run);
  remainder->kind = last->kind = Kind::kFree;
  remainder->dirty = last->dirty = dirty;
  remainder->length = last->length = rest;
  remainder->magic = 0;
  bins.insert(remainder);
  if (dirty) {
    age_replace(run, remainder);
    commitment.dirty -= size_t{granules} * kGranule;
  }
  run->kind = Kind::kNone;
  run[granules - 1].kind = Kind::kNone;
}

// Takes the last granules of a free run. The front stays free, so that a span before it can still grow in place.
Granule* Arena::take_back(Granule* run, uint32_t granules) {
  const uint32_t rest = run->length - granules;
  Granule* taken = run + rest;
  if (rest == 0) {
    take_out(run);
    return taken;
  }
  Granule* last = taken - 1;
  const bool dirty = run->dirty;
  RunBins& bins = dirty ? dirty_ : clean_;
  bins.remove(run);
  last->kind = Kind::kFree;
  last->dirty = dirty;
  run->length = last->length = rest;
  last->magic = 0;
  bins.insert(run);
  if (dirty) commitment.dirty -= size_t{granules} * kGranule;
  taken->kind = taken[granules - 1].kind = Kind::kNone;
  return taken;
}

// The free run of that state which ends where this one begins, or begins where it ends; nullptr where there is none.
Granule* Arena::run_before(Granule* head, bool dirty) const {
  const Granule* last = head - 1;
  return last >= first() && last->kind == Kind::kFree && last->dirty == dirty ? head - last->length : nullptr;
}

Granule* Arena::run_after(Granule* head, uint32_t granules, bool dirty) const {
  Granule* after = head + granules;
  return after < frontier() && after->kind == Kind::kFree && after->dirty == dirty ? after : nullptr;
}

// Makes a run free, joined with its free neighbours of the same state; returns the joined run.
Granule* Arena::put(Granule* head, uint32_t granules, bool dirty) {
  if (Granule* before = run_before(head, dirty)) {
    head = before;
    granules += before->length;
    take_out(before);
  }
  if (Granule* after = run_after(head, granules, dirty)) {
    granules += after->length;
    take_out(after);
  }
  Granule* last = head + granules - 1;
  head->kind = last->kind = Kind::kFree;
  head->dirty = last->dirty = dirty;
  head->length = last->length = granules;
  head->magic = last->magic = 0;
  (dirty ? dirty_ : clean_).insert(head);
  return head;
}

// The joined run is as old as its longest part, and has that one's place: what comes and goes at its ends must not keep
// it from ever being due.
void Arena::put_dirty(Granule* head, uint32_t granules, uint64_t now_ms) {
  Granule* const parts[2] = {run_before(head, true), run_after(head, granules, true)};
  const Granule* longest = nullptr;
  for (const Granule* part : parts) {
    if (part != nullptr && part->length > (longest == nullptr ? granules : longest->length)) longest = part;
  }
  Granule* older = longest == nullptr ? commitment.newest : longest->older;
  while (older != nullptr && (older == parts[0] || older == parts[1])) older = older->older;
  const uint64_t freed_ms = longest == nullptr ? now_ms : longest->freed_ms;
  Granule* run = put(head, granules, true);
  age_insert(run, older, freed_ms);
  commitment.dirty += size_t{run->length} * kGranule;
}

Granule* Arena::take_dirty(uint32_t granules) {
  Granule* run = dirty_.find(granules);
  return run == nullptr ? nullptr : take_back(run, granules);
}

Granule* Arena::take_clean(uint32_t granules) {
  Granule* run = clean_.find(granules);
  if (run != nullptr) take_front(run, granules);
  return run;
}

bool Arena::can_join(Granule* dirty, uint32_t granules) const {
  const Granule* before = run_before(dirty, false);
  const Granule* after = run_after(dirty, dirty->length, false);
  return dirty->length + (before == nullptr ? 0 : before->length) + (after == nullptr ? 0 : after->length) >= granules;
}

Granule* Arena::take_joined(Granule* dirty, uint32_t granules) {
  Granule* before = run_before(dirty, false);
  Granule* after = run_after(dirty, dirty->length, false);
  const uint32_t missing = granules - dirty->length;
  const uint32_t from_after = after == nullptr ? 0 : std::min(after->length, missing);
  take_out(dirty);
  if (from_after > 0) take_front(after, from_after);
  Granule* head = missing > from_after ? take_back(before, missing - from_after) : dirty;
  head->kind = head[granules - 1].kind = Kind::kNone;
  return head;
}

// Never-used granules, in whole pieces of 2 MiB, so that the pages can be huge and can be moved by whole tables. A run
// starts at a multiple of 2 MiB unless it fits before the next one; what is left of its last piece is clean and free.
Granule* Arena::take_frontier(uint32_t granules, bool huge_pages) {
  uint32_t start = frontier_;
  const uint32_t piece_end = round_up(start, kGranulesPerHugePage);
  if (granules > piece_end - start) start = piece_end;
  uint32_t end = round_up(start + granules, kGranulesPerHugePage);
  if (!commit_to(end)) {
    end = start + granules;
    if (!commit_to(end)) return nullptr;
  }
  const uint32_t gap = start - frontier_;
  Granule* gap_head = frontier();
  frontier_ = end;
  if (gap > 0) put_clean(gap_head, gap);
  Granule* run = metadata() + start;
  advise(run, end - start, huge_pages);
  run->kind = run[granules - 1].kind = Kind::kNone;
  if (end > start + granules) put_clean(run + granules, end - start - granules);
  return run;
}

Granule* Arena::take_for_purge(Granule* run, uint32_t granules) {
  Granule* taken = take_back(run, granules);
  taken->kind = taken[granules - 1].kind = Kind::kPurging;
  taken->length = taken[granules - 1].length = granules;
  return taken;
}

// Says which pages fresh memory is to have, also where the answer is small ones: a system that gives huge pages unasked
// would make the first touch of a small heap cost 2 MiB.
void Arena::advise(Granule* fresh, uint32_t granules, bool huge_pages) {
  const size_t bytes = size_t{granules} * kGranule;
  os::advise_huge(start_of(fresh), bytes, huge_pages);
  if (huge_pages) commitment.huge += bytes;
}

bool Arena::take_following(Granule* end, uint32_t granules, bool huge_pages) {
  if (end == frontier()) {
    const uint32_t wanted = round_up(frontier_ + granules, kGranulesPerHugePage);
    if (!commit_to(wanted)) return false;
    const uint32_t taken = wanted - frontier_;
    frontier_ = wanted;
    advise(end, taken, huge_pages);
    end[granules - 1].kind = Kind::kNone;
    if (taken > granules) put_clean(end + granules, taken - granules);
    return true;
  }
  if (end > frontier() || end->kind != Kind::kFree || end->length < granules) return false;
  take_front(end, granules);
  return true;
}

// --- the arenas together --------------------------------------------------------------------------------------------

namespace {

bool add_arena(size_t bytes, size_t least) {
  if (arena_count == kMaxArenas) return false;
  for (; bytes >= least; bytes = round_up(bytes / 2, kHugePage)) {
    if (arenas[arena_count].reserve(bytes)) {
      __atomic_store_n(&arena_count, arena_count + 1, __ATOMIC_RELEASE);
      return true;
    }
    if (bytes == least) break;
    if (bytes / 2 < least) bytes = least * 2;
  }
  return false;
}

// Of the slabs' nonces: under the arena lock.
constinit uint64_t next_nonce = 0;

size_t standard_arena() {
  const size_t limit = os::address_space_limit();
  size_t bytes = std::min(os::options.reserve_bytes, kLargestArena);
  if (limit != SIZE_MAX) bytes = std::min(bytes, limit / kAddressSpaceShare);
  return std::max(round_up(bytes, kHugePage), kSmallestArena);
}

bool set_up_locked() {
  if (arena_count > 0) return true;
  os::read_options();
  if (!add_arena(standard_arena(), kSmallestArena)) return false;
  primary.base = arenas[0].base();
  next_nonce = os::random_word();
  return true;
}

void mark(Granule* run, uint32_t granules, Purpose purpose) {
  if (purpose == Purpose::kSpan) {
    run[granules - 1].kind = Kind::kSpanTail;
    run[granules - 1].length = granules;
    run->kind = Kind::kSpan;
    run->length = granules;
    return;
  }
  run->kind = Kind::kSlab;
  for (uint32_t i = 1; i < granules; ++i) {
    run[i].kind = Kind::kSlabTail;
    run[i].back = static_cast<uint8_t>(i);
    run[i].magic = 0;
  }
}

// Nothing inside what is becoming a free run may look like a slab or a span.
void unmark(Granule* run, uint32_t granules, Purpose purpose) {
  run[granules - 1].kind = Kind::kNone;
  const uint32_t marked = purpose == Purpose::kSlab ? granules : 1;
  for (uint32_t i = 0; i < marked; ++i) run[i].kind = Kind::kNone;
}

void account_taken(size_t bytes, Purpose purpose) {
  commitment.live += bytes;
  // Also read without the lock (core/fault_ahead.cpp).
  if (commitment.live > commitment.peak) __atomic_store_n(&commitment.peak, commitment.live, __ATOMIC_RELAXED);
  if (purpose == Purpose::kSpan) {
    commitment.spans += bytes;
    note_touched(bytes);
  }
}

void account_given(size_t bytes, Purpose purpose) {
  commitment.live -= bytes;
  if (purpose == Purpose::kSpan) {
    commitment.spans -= bytes;
    note_untouched(bytes);
  }
}

// Whether ANNEX_MAX_HEAP leaves room for so many bytes more, beside what other threads are about to take.
bool limit_allows(size_t bytes) {
  const size_t limit = os::options.max_heap_bytes;
  return limit == 0 || (bytes <= limit && commitment.live + commitment.promised <= limit - bytes);
}

template <class Take>
Granule* first_arena_that(Take take) {
  for (uint32_t i = 0; i < arena_count; ++i) {
    if (Granule* run = take(arenas[i])) return run;
  }
  return nullptr;
}

// A dirty run that is too short for a span is used all the same where clean neighbours make up the rest: otherwise runs
// of many lengths leave holes, the span touches fresh memory, and the dirty run is given back to make up for it. At
// least half must be dirty, since calloc clears the whole. Of the newest few, the longest.
Granule* take_joined(uint32_t granules) {
  constexpr int kLook = 32;
  Granule* best = nullptr;
  int looked_at = 0;
  for (Granule* run = commitment.newest; run != nullptr && looked_at < kLook; run = run->older, ++looked_at) {
    if (run->length < granules / 2 || (best != nullptr && run->length <= best->length)) continue;
    if (arena_of(run)->can_join(run, granules)) best = run;
  }
  if (best == nullptr) return nullptr;
  const uint32_t clean = granules - best->length;
  Granule* run = arena_of(best)->take_joined(best, granules);
  Granule* last = run + granules - 1;
  run->kind = last->kind = Kind::kPurging;  // in nobody's hands while the lock is let go
  run->length = last->length = granules;
  before_growth(size_t{clean} * kGranule);
  run->kind = last->kind = Kind::kNone;
  return run;
}

Granule* take_unmarked(uint32_t granules, Purpose purpose, size_t used, bool* clean) {
  const size_t bytes = size_t{granules} * kGranule;
  const auto from_clean = [=](Arena& arena) { return arena.take_clean(granules); };
  *clean = false;
  if (Granule* run = first_arena_that([=](Arena& arena) { return arena.take_dirty(granules); })) return run;
  if (purpose == Purpose::kSpan) {
    if (Granule* run = take_joined(granules)) return run;
    before_growth(bytes);
  }
  *clean = true;
  if (Granule* run = first_arena_that(from_clean)) return run;
  const bool huge = purpose == Purpose::kSlab ? slabs_want_huge_pages() : span_wants_huge_pages(used);
  if (purpose == Purpose::kSlab) note_fresh_slabs();
  const auto from_frontier = [=](Arena& arena) { return arena.take_frontier(granules, huge); };
  if (Granule* run = first_arena_that(from_frontier)) return run;
  // Exhausted. Everything dirty becomes clean, and so is joined with its clean neighbours.
  purge_all_locked();
  if (Granule* run = first_arena_that(from_clean)) return run;
  const size_t metadata = bytes / kGranule * sizeof(Granule);
  const size_t least = std::max(round_up(bytes + metadata + kHugePage, kHugePage), kSmallestArena);
  if (!add_arena(std::max(standard_arena(), least), least)) return nullptr;
  return arenas[arena_count - 1].take_frontier(granules, huge);
}

// A longer run, its ends cut off.
Granule* take_aligned(uint32_t granules, uint32_t alignment, Purpose purpose, size_t used, bool* clean) {
  Granule* run = take_unmarked(granules + alignment - 1, purpose, used, clean);
  if (run == nullptr) return nullptr;
  Arena& arena = *arena_of(run);
  const uint32_t misaligned =
      static_cast<uint32_t>((reinterpret_cast<uintptr_t>(arena.start_of(run)) >> kGranuleShift) & (alignment - 1));
  const uint32_t front = misaligned == 0 ? 0 : alignment - misaligned;
  const uint32_t back = alignment - 1 - front;
  run[front].kind = run[front + granules - 1].kind = Kind::kNone;
  const auto put = [&](Granule* head, uint32_t length) {
    if (length == 0) return;
    if (*clean) {
      arena.put_clean(head, length);
    } else {
      arena.put_dirty(head, length, os::now_ms());
    }
  };
  put(run, front);
  put(run + front + granules, back);
  return run + front;
}

}  // namespace

bool set_up() {
  os::Guard guard(arena_lock);
  return set_up_locked();
}

namespace {

Granule* take_run_locked(uint32_t granules, uint32_t alignment, Purpose purpose, size_t used, bool* clean) {
  const size_t bytes = size_t{granules} * kGranule;
  if (!set_up_locked() || !limit_allows(bytes)) return nullptr;
  // Taking may let go of the lock for a while, in which others must not be promised the same bytes.
  commitment.promised += bytes;
  Granule* run = alignment <= 1 ? take_unmarked(granules, purpose, used, clean)
                                : take_aligned(granules, alignment, purpose, used, clean);
  commitment.promised -= bytes;
  if (run == nullptr) return nullptr;
  mark(run, granules, purpose);
  account_taken(bytes, purpose);
  want_purger();
  return run;
}

// Last of all, as it lets go of the lock: what is dirty and due has not been of use to this one, and so goes back.
void after_take(uint32_t granules, bool clean) {
  if (clean && commitment.oldest != nullptr) give_back_due(os::now_ms(), granules * kGranule);
}

}  // namespace

Granule* take_slab_run(SizeClass c, bool* clean) {
  os::Guard guard(arena_lock);
  const uint32_t granules = slab_granules(c);
  Granule* run = take_run_locked(granules, 1, Purpose::kSlab, granules * kGranule, clean);
  if (run == nullptr) return nullptr;
  run->size_class = c;
  run->nonce = static_cast<uint16_t>(os::mixed(next_nonce++) | 0x8000);
  run->until = run->floor = 0;
  after_take(granules, *clean);
  return run;
}

Granule* take_span_run(uint32_t granules, uint32_t alignment, size_t bytes, bool* clean) {
  os::Guard guard(arena_lock);
  Granule* run = take_run_locked(granules, alignment, Purpose::kSpan, bytes, clean);
  if (run == nullptr) return nullptr;
  run->magic = 0;
  run->bytes = bytes;
  after_take(granules, *clean);
  return run;
}

void give_run(Granule* head, uint32_t granules, Purpose purpose, bool clean) {
  const uint64_t now = clean ? 0 : os::now_ms();  // not under the lock: it may be a system call
  os::Guard guard(arena_lock);
  unmark(head, granules, purpose);
  account_given(size_t{granules} * kGranule, purpose);
  if (clean) {
    arena_of(head)->put_clean(head, granules);
    return;
  }
  arena_of(head)->put_dirty(head, granules, now);
  give_back_due(now, granules * kGranule);
}

bool resize_span(Granule* head, size_t bytes) {
  os::Guard guard(arena_lock);
  const uint32_t before = head->length;
  const uint32_t granules = static_cast<uint32_t>((bytes + kGranule - 1) >> kGranuleShift);
  Arena& arena = *arena_of(head);
  if (granules > before) {
    const size_t more = size_t{granules - before} * kGranule;
    if (!limit_allows(more)) return false;
    if (!arena.take_following(head + before, granules - before, span_wants_huge_pages(bytes))) return false;
    head[before - 1].kind = Kind::kNone;
    account_taken(more, Purpose::kSpan);
    mark(head, granules, Purpose::kSpan);
  } else if (granules < before) {
    head[before - 1].kind = Kind::kNone;
    mark(head, granules, Purpose::kSpan);
    account_given(size_t{before - granules} * kGranule, Purpose::kSpan);
    const uint64_t now = os::now_ms();
    arena.put_dirty(head + granules, before - granules, now);
    head->bytes = bytes;
    give_back_due(now, (before - granules) * kGranule);
    return true;
  }
  head->bytes = bytes;
  return true;
}

Arena* arena_of(const void* address) {
  const uint32_t count = __atomic_load_n(&arena_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (arenas[i].contains(address)) return &arenas[i];
  }
  return nullptr;
}

Granule* granule_of(const void* address) {
  const Arena* arena = arena_of(address);
  return arena == nullptr ? nullptr : arena->granule_checked(address);
}

char* start_of(const Granule* granule) { return arena_of(granule)->start_of(granule); }

}  // namespace annex
