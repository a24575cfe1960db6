// Runs: see runs.h.
#include "core/runs.h"

#include <algorithm>

#include "core/chance.h"
#include "core/commitment.h"
#include "core/gather.h"
#include "core/heap_limit.h"
#include "core/purge.h"
#include "core/secret.h"
#include "core/transfer_cache.h"
#include "os/clock.h"
#include "os/guards.h"
#include "os/options.h"
#include "os/pages.h"
#include "os/random.h"

namespace annex {

namespace {

constexpr size_t kSmallestArena = 2 * kHugePage;
constexpr size_t kLargestArena = size_t{kLongestRun / 2} * kGranule;
constexpr uint64_t kEmptyAfterMs = 100;  // for the transfer cache: so long may something lie there

bool add_arena(size_t bytes) {
  if (arena_count == kMaxArenas || !arenas[arena_count].begin(bytes)) return false;
  __atomic_store_n(&arena_count, arena_count + 1, __ATOMIC_RELEASE);
  return true;
}

// Each further one has twice the room, so that a small ANNEX_RESERVE is no limit.
size_t standard_arena() {
  constexpr size_t kMost = os::kRoomIsReserved ? size_t{64} << 30 : SIZE_MAX;
  const size_t first = std::min(os::options.reserve_bytes, kMost);
  const size_t doubled = std::min<size_t>(first, kLargestArena >> arena_count) << arena_count;
  return std::max(round_up(doubled, kHugePage), kSmallestArena);
}

// Of slabs' keys, what is by chance: under the arena lock.
constinit uint64_t key_chance = 0;

constinit TransferCache transfer_cache;
constinit uint64_t emptied_ms = 0;  // when the transfer cache was last emptied, under the arena lock

// Whether there are guards. Not where addresses are scarce, or what is writable is limited: guards split long free
// runs, and what is unreadable can't be counted on to be writable again.
bool guards_wanted() { return kGuards && addresses_abound(); }

bool set_up_locked() {
  if (arena_count > 0) return true;
  if (kByChance) secret.draw();
  if (kGuards) os::set_guard_budget();
  addresses_are_scarce = os::address_space_limit() != SIZE_MAX || os::data_limit() != SIZE_MAX;
  if (!add_arena(standard_arena())) return false;
  key_chance = os::random_word();
  return true;
}

// What a run is taken for.
enum class Purpose : uint8_t { kFirstSlab, kSlab, kSpan };  // kFirstSlab: of its class in a heap

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
    run[i].limit = 0;
  }
}

// Nothing inside what is becoming a free run may look like a slab or a span.
void unmark(Granule* run, uint32_t granules, Purpose purpose) {
  run[granules - 1].kind = Kind::kNone;
  const uint32_t marked = purpose != Purpose::kSpan ? granules : 1;
  for (uint32_t i = 0; i < marked; ++i) run[i].kind = Kind::kNone;
}

// For a moment the old place of what is moved counts as well as the new one, which is no peak.
void account_moved(size_t bytes, Purpose purpose) {
  commitment.live += bytes;
  if (purpose == Purpose::kSpan) {
    commitment.spans += bytes;
    note_touched(bytes);
  }
}

void account_taken(size_t bytes, Purpose purpose) {
  account_moved(bytes, purpose);
  // Also read without the lock (core/fault_ahead.cpp).
  if (commitment.live > commitment.peak) __atomic_store_n(&commitment.peak, commitment.live, __ATOMIC_RELAXED);
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

// A run that was taken is nobody's any more.
void end_run(Granule* run, uint32_t granules, Purpose purpose) {
  unmark(run, granules, purpose);
  account_given(size_t{granules} * kGranule, purpose);
}
void put_dirty(Granule* run, uint32_t granules, Purpose purpose, uint64_t now_ms) {
  end_run(run, granules, purpose);
  arena_of(run)->put_dirty(run, granules, now_ms);
}
void put_clean(Granule* run, uint32_t granules, Purpose purpose) {
  end_run(run, granules, purpose);
  arena_of(run)->put_clean(run, granules);
}

// What is in the transfer cache becomes free in the arena. False where there is nothing.
bool empty_transfer_cache() {
  Granule* run = transfer_cache.take();
  if (run == nullptr) return false;
  const uint64_t now = os::now_ms();
  for (; run != nullptr; run = transfer_cache.take()) put_dirty(run, 1, Purpose::kSlab, now);
  return true;
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
  for (Granule* run = commitment.newest; run != nullptr && looked_at < kLook; run = run->age.older, ++looked_at) {
    if (run->length < granules / 2 || (best != nullptr && run->length <= best->length)) continue;
    if (arena_of(run)->can_join(run, granules)) best = run;
  }
  if (best == nullptr) return nullptr;
  const uint32_t clean = granules - best->length;
  Granule* run = arena_of(best)->take_joined(best, granules);
  Granule* last = run + granules - 1;
  set_aside(run, granules);
  before_growth(size_t{clean} * kGranule);
  run->kind = last->kind = Kind::kNone;
  return run;
}

// Each span without its tail is a mapping of its own, of which a process may have 65,530.
constexpr uint32_t kMostTails = 16384;
constinit uint32_t tails_unmapped = 0;

// The addresses behind what spans can use are given back, until so many bytes have been. (The hardened build keeps its
// canaries there.)
size_t unmap_tails(size_t bytes) {
  size_t total = 0;
  for (uint32_t i = 0; i < arena_count && !kByChance; ++i) {
    Arena& arena = arenas[i];
    for (Granule* run = arena.first(); run < arena.frontier(); run += Arena::length_of(run)) {
      if (total >= bytes || tails_unmapped == kMostTails) return total;
      const bool has_tail = run->kind == Kind::kSpan && !run->tail_unmapped && Arena::tail_bytes(run) > 0;
      if (!has_tail || !arena.unmap_tail(run)) continue;
      ++tails_unmapped;
      total += Arena::tail_bytes(run);
    }
  }
  return total;
}

// Memory was refused for so many bytes: gives as many addresses back that are mapped and hold nothing, and some more so
// that this is not done for each run. False where that changes nothing.
bool make_room(size_t bytes) {
  constexpr size_t kMore = 2 * kHugePage;
  if (bytes > commitment.committed) return false;
  size_t total = 0;
  for (uint32_t i = 0; i < arena_count; ++i) total += arenas[i].unmap_clean(bytes + kMore - total);
  if (total < bytes + kMore) total += unmap_tails(bytes + kMore - total);
  return total > 0;
}

// A span that lacks its tail gets it back; false where that is refused.
bool has_tail(Granule* span) {
  if (!span->tail_unmapped) return true;
  if (!arena_of(span)->map_tail(span)) return false;
  --tails_unmapped;
  return true;
}

Granule* take_unmarked(uint32_t granules, Purpose purpose, size_t used, bool* clean) {
  const size_t bytes = size_t{granules} * kGranule;
  const auto from_clean = [=](Arena& arena) { return arena.take_clean(granules); };
  const auto from_dirty = [=](Arena& arena) { return arena.take_dirty(granules); };
  const auto from_unmapped = [=](Arena& arena) { return arena.take_unmapped(granules); };
  const auto untouched = [&](bool huge) {
    *clean = true;
    const auto advised = [=](Granule* run) {
      if (huge && granules >= kGranulesPerHugePage) arena_of(run)->advise_huge(run, granules);
      return run;
    };
    if (Granule* run = first_arena_that(from_clean)) return advised(run);
    if (purpose != Purpose::kSpan) note_fresh_slabs();
    if (Granule* run = first_arena_that(from_unmapped)) return advised(run);
    return first_arena_that([=](Arena& arena) { return arena.take_frontier(granules, huge); });
  };
  if (purpose == Purpose::kFirstSlab && first_slabs_want_clean_memory()) {
    if (Granule* run = untouched(false)) return run;
  }
  *clean = false;
  if (Granule* run = first_arena_that(from_dirty)) return run;
  if (empty_transfer_cache()) {
    if (Granule* run = first_arena_that(from_dirty)) return run;
  }
  if (purpose == Purpose::kSpan) {
    if (granules >= kGranulesPerHugePage) {
      if (Granule* run = take_gathered(granules)) return run;
    }
    if (Granule* run = take_joined(granules)) return run;
    before_growth(bytes);
  }
  const bool huge = purpose == Purpose::kSpan ? span_wants_huge_pages(used) : slabs_want_huge_pages();
  if (Granule* run = untouched(huge)) return run;
  // Exhausted. Everything dirty becomes clean, and so is joined with its clean neighbours; and what is mapped and not
  // used makes room for what is to be.
  purge_all_locked();
  if (Granule* run = untouched(false)) return run;
  if (make_room(bytes)) {
    if (Granule* run = untouched(false)) return run;
  }
  // Another arena has other addresses, and no more memory.
  for (uint32_t i = 0; i < arena_count; ++i) {
    if (arenas[i].has_room_for(granules)) return nullptr;
  }
  if (!add_arena(std::max(standard_arena(), round_up(bytes, kHugePage)))) return nullptr;
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
  os::read_options();  // and with it what libc is asked, which others may stand before
  os::Guard guard(arena_lock);
  return set_up_locked();
}

namespace {

Granule* take_run_locked(uint32_t granules, uint32_t alignment, Purpose purpose, size_t used, bool* clean) {
  const size_t bytes = size_t{granules} * kGranule;
  if (!set_up_locked()) return nullptr;
  if (!limit_allows(bytes) && !(empty_transfer_cache() && limit_allows(bytes))) {
    heap_limit_refuses();
    return nullptr;
  }
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
  if (clean && something_may_be_due()) give_back_due(os::now_ms(), granules * kGranule);
}

}  // namespace

namespace {

// Whatever a walk reads of a slab without blocks, and a key by chance.
void prepare_for_slab(Granule* run, SizeClass c) {
  run->size_class = c;
  run->limit = 0;
  run->key = os::mixed(key_chance++);
  run->carved = 0;
  run->countdown = run->used_after = 0;
}

// Now and then a granule among slabs is left out for good: whoever reads or writes on and on from a block gets there.
constexpr uint32_t kSlabsPerGuard = 64;

void leave_guard() {
  static constinit Chance odds;
  if (!guards_wanted() || odds.below(kSlabsPerGuard) != 0) return;
  Granule* run = first_arena_that([](Arena& arena) { return arena.take_clean(1); });
  if (run == nullptr) return;
  if (os::add_guard(start_of(run), kGranule, true) != os::GuardKind::kNone) return set_aside(run, 1);
  run->kind = Kind::kNone;
  arena_of(run)->put_clean(run, 1);
}

// Clean runs of one granule, linked; fewer where the arena would have to grow for more, and none where the heap has a
// limit, of which other threads may need the rest.
Granule* take_spares(SizeClass c, uint32_t count) {
  if (os::options.max_heap_bytes != 0) return nullptr;
  Granule* spares = nullptr;
  for (; count > 0; --count) {
    Granule* run = first_arena_that([](Arena& arena) { return arena.take_clean(1); });
    if (run == nullptr) break;
    mark(run, 1, Purpose::kSlab);
    account_taken(kGranule, Purpose::kSlab);
    prepare_for_slab(run, c);
    run->next = spares;
    spares = run;
  }
  return spares;
}

}  // namespace

Granule* take_slab_run(SizeClass c, bool* clean, bool first, uint32_t more, Granule** spares) {
  const uint32_t granules = slab_granules(c);
  if (!arena_lock.try_lock()) {
    if (Granule* run = granules == 1 ? transfer_cache.take() : nullptr) {
      run->size_class = c;
      run->key = os::mixed(run->key);
      *clean = false;
      return run;
    }
    arena_lock.lock();
  }
  const Purpose purpose = first ? Purpose::kFirstSlab : Purpose::kSlab;
  Granule* run = take_run_locked(granules, 1, purpose, granules * kGranule, clean);
  if (run != nullptr) {
    prepare_for_slab(run, c);
    if (*clean && granules == 1 && more > 0) *spares = take_spares(c, more);
    if (*clean) leave_guard();
    after_take(granules, *clean);
  }
  arena_lock.unlock();
  return run;
}

void give_slab_run(Granule* head) {
  const uint32_t granules = slab_granules(head->size_class);
  const uint64_t now = os::now_ms();  // not under the lock: it may be a system call
  if (!arena_lock.try_lock()) {
    if (granules == 1 && transfer_cache.put(head)) return;
    arena_lock.lock();
  }
  put_dirty(head, granules, Purpose::kSlab, now);
  if (now >= emptied_ms + kEmptyAfterMs) {
    emptied_ms = now;
    empty_transfer_cache();
  }
  give_back_due(now, granules * kGranule);
  arena_lock.unlock();
}

namespace {

// Guards before and behind a span are runs of their own, which nothing joins.
constexpr uint32_t kBehind = 1;

Granule* leave_guards(Granule* run, uint32_t before, uint32_t granules) {
  Granule* const span = run + before;
  span->span.before = before;
  if (before == 0) return span;
  unmark(run, before + granules + kBehind, Purpose::kSpan);
  mark(span, granules, Purpose::kSpan);
  set_aside(run, before);
  set_aside(span + granules, kBehind);
  account_given(size_t{before + kBehind} * kGranule, Purpose::kSpan);
  return span;
}
// What was taken for a span of so many granules.
Granule* rejoin_guards(Granule* span, uint32_t* granules) {
  const uint32_t before = span->span.before;
  if (!kByChance || before == 0) return span;
  for (Granule* end : {span - before, span - 1, span, span + *granules - 1, span + *granules}) end->kind = Kind::kNone;
  account_moved(size_t{before + kBehind} * kGranule, Purpose::kSpan);
  *granules += before + kBehind;
  return span - before;
}

}  // namespace

Granule* take_span_run(uint32_t granules, uint32_t alignment, size_t bytes, bool* clean) {
  os::Guard guard(arena_lock);
  const uint32_t before = guards_wanted() ? alignment : 0;
  Granule* run =
      take_run_locked(before + granules + (before > 0 ? kBehind : 0), alignment, Purpose::kSpan, bytes, clean);
  if (run == nullptr) return nullptr;
  run = leave_guards(run, before, granules);
  run->limit = 0;
  run->span.bytes = bytes;
  run->tail_unmapped = false;
  if (*clean && granules >= kGranulesPerHugePage) note_fresh_span(run);
  after_take(granules, *clean);
  return run;
}

Granule* take_span_run_to_move_into(uint32_t kept, uint32_t granules, size_t bytes) {
  os::Guard guard(arena_lock);
  // What is moved is not taken: neither the limit nor the peak sees it twice.
  const size_t more = size_t{granules - kept} * kGranule;
  if (!limit_allows(more)) return nullptr;
  commitment.promised += more;
  Granule* run = take_to_move_into(kept, granules);
  commitment.promised -= more;
  if (run == nullptr) return nullptr;
  mark(run, granules, Purpose::kSpan);
  account_taken(more, Purpose::kSpan);
  account_moved(size_t{kept} * kGranule, Purpose::kSpan);
  run->limit = 0;
  run->span.bytes = bytes;
  run->tail_unmapped = false;
  note_fresh_span(run);
  return run;
}

namespace {

// There is no memory to make the run whole again: then it is no longer mapped at all.
void give_without_tail(Granule* head) {
  const uint32_t granules = head->length;
  const size_t bytes = head->span.bytes;
  --tails_unmapped;
  end_run(head, granules, Purpose::kSpan);
  Arena& arena = *arena_of(head);
  if (os::unmap_at(arena.start_of(head), bytes)) {
    arena.put_unmapped(head, granules, bytes);
  } else {
    set_aside(head, granules);  // for good
  }
}

}  // namespace

void give_span_run(Granule* head, bool clean, const Granule* moved_to) {
  uint32_t granules = head->length;
  const uint64_t now = clean ? 0 : os::now_ms();  // not under the lock: it may be a system call
  os::Guard guard(arena_lock);
  note_span_gone(head, start_of(head), clean);
  if (moved_to != nullptr) arena_of(moved_to)->note_moved(head, moved_to, granules);
  if (!has_tail(head)) return give_without_tail(head);
  head = rejoin_guards(head, &granules);
  if (clean) return put_clean(head, granules, Purpose::kSpan);
  put_dirty(head, granules, Purpose::kSpan, now);
  give_back_due(now, granules * kGranule);
}

void give_back_some(size_t bytes) {
  const uint64_t now = os::now_ms();
  if (!arena_lock.try_lock()) return;
  give_back_due(now, bytes);
  arena_lock.unlock();
}

void give_spares(Granule* spares) {
  if (spares == nullptr) return;
  os::Guard guard(arena_lock);
  while (spares != nullptr) {
    Granule* run = spares;
    spares = run->next;
    put_clean(run, 1, Purpose::kSlab);
  }
}

size_t purge_all() {
  os::Guard guard(arena_lock);
  empty_transfer_cache();
  const size_t bytes = purge_all_locked();
  for (uint32_t i = 0; i < arena_count; ++i) arenas[i].trim();
  return bytes;
}

bool resize_span(Granule* head, size_t bytes) {
  os::Guard guard(arena_lock);
  if (!has_tail(head)) return false;
  const uint32_t before = head->length;
  const uint32_t granules = static_cast<uint32_t>((bytes + kGranule - 1) >> kGranuleShift);
  Arena& arena = *arena_of(head);
  if (granules > before) {
    const size_t more = size_t{granules - before} * kGranule;
    if (!limit_allows(more)) return false;
    Granule* const following = head + before;
    bool clean = false;
    if (!arena.take_following(following, granules - before, span_wants_huge_pages(bytes), &clean)) return false;
    if (clean) {  // before_growth may let go of the lock
      set_aside(following, granules - before);
      commitment.promised += more;
      before_growth(more);
      commitment.promised -= more;
      following->kind = Kind::kNone;
    }
    head[before - 1].kind = Kind::kNone;
    account_taken(more, Purpose::kSpan);
    mark(head, granules, Purpose::kSpan);
  } else if (granules < before) {
    head[before - 1].kind = Kind::kNone;
    mark(head, granules, Purpose::kSpan);
    account_given(size_t{before - granules} * kGranule, Purpose::kSpan);
    const uint64_t now = os::now_ms();
    arena.put_dirty(head + granules, before - granules, now);
    head->span.bytes = bytes;
    give_back_due(now, (before - granules) * kGranule);
    return true;
  }
  head->span.bytes = bytes;
  return true;
}

}  // namespace annex
