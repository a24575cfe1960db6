// Of which pages a run is made: see page_heap.h. What is found is nobody's yet.
#include <algorithm>

#include "os/clock.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex {

bool PageHeap::wants_huge_pages(const Want& want) const {
  return want.use == Use::kSpan ? commitment::span_wants_huge_pages(books, want.bytes)
                                : commitment::slabs_want_huge_pages(books);
}

// A longer run, its ends cut off.
Run PageHeap::find(Locked& lock, const Want& want, uint32_t granules) {
  if (want.alignment <= 1) return find_unaligned(lock, want, granules);
  const uint32_t longer = granules + want.alignment - 1;
  const Run run = find_unaligned(lock, want, longer);
  if (run.head == nullptr) return {};
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(start_of(run.head)) >> kGranuleShift & (want.alignment - 1);
  const uint32_t front = misaligned == 0 ? 0 : want.alignment - static_cast<uint32_t>(misaligned);
  const FreeState state = run.clean ? FreeState::kClean : FreeState::kDirty;
  return {free_.put_rest(run.head, longer, front, granules, state, run.clean ? 0 : os::now_ms()), run.clean};
}

Run PageHeap::find_unaligned(Locked& lock, const Want& want, uint32_t granules) {
  const bool is_span = want.use == Use::kSpan;
  if (want.use == Use::kFirstSlab && commitment::first_slabs_want_clean_memory(books)) {
    if (const Run run = find_untouched(granules, want, false); run.head != nullptr) return run;
  }
  if (Granule* run = find_dirty(granules)) return {run, false};
  if (empty_transfer_cache(lock)) {
    if (Granule* run = find_dirty(granules)) return {run, false};
  }
  if (is_span) {
    if (granules >= kGranulesPerHugePage) {
      if (Granule* run = gather(lock, granules)) return {run, false};
    }
    if (Granule* run = find_joined(lock, granules)) return {run, false};
    before_growth(lock, size_t{granules} * kGranule);
  }
  if (is_span && granules >= kGranulesPerHugePage) look_at_watched(lock);
  if (const Run run = find_untouched(granules, want, true); run.head != nullptr) return run;
  return find_exhausted(lock, want, granules);
}

// Clean memory, or memory that was never used.
Run PageHeap::find_untouched(uint32_t granules, const Want& want, bool may_be_huge) {
  Granule* run = find_clean(granules);
  if (run == nullptr) commitment::look_at_growth(&books, want.use != Use::kSpan);
  const bool huge_pages = may_be_huge && wants_huge_pages(want);
  if (run == nullptr) {
    run = find_unmapped(granules);
    if (run == nullptr) return {extend_any(granules, huge_pages), true};
  }
  if (huge_pages && granules >= kGranulesPerHugePage) {
    arena_of_run(run).advise_huge(run, granules, &books);
  }
  return {run, true};
}

// Everything dirty becomes clean, and so is joined with its clean neighbours; what is mapped and not used makes room
// for what is to be. And only where it is addresses that are short, there is another arena: it has no more memory.
Run PageHeap::find_exhausted(Locked& lock, const Want& want, uint32_t granules) {
  const size_t bytes = size_t{granules} * kGranule;
  Unlocked::wait_for_others(lock);
  purge_all(lock);
  if (const Run run = find_untouched(granules, want, false); run.head != nullptr) return run;
  if (make_room(lock, bytes)) {
    if (const Run run = find_untouched(granules, want, false); run.head != nullptr) return run;
  }
  for (uint32_t i = 0; i < arena_count; ++i) {
    if (arenas[i].has_room_for(granules)) return {};
  }
  Arena* const arena = add_arena(std::max(standard_arena(), round_up(bytes, kHugePage)), &books);
  return {arena == nullptr ? nullptr : extend(*arena, granules, wants_huge_pages(want)), true};
}

// How far into a free run that is long enough the granules lie which are taken from it, by chance: a multiple of their
// number, so that others of that length fit beside them. In order where addresses are scarce: then long runs must stay
// free.
uint32_t PageHeap::offset_by_chance(uint32_t length, uint32_t granules) {
  return addresses_abound() && granules < kGranulesPerHugePage ? chance_.below(length / granules) * granules : 0;
}

// From its end; a run of several 2 MiB, unless addresses are scarce, so that it starts at a multiple of them, where it
// can: its pages can then be moved by whole tables (gather.cpp).
Granule* PageHeap::find_dirty(uint32_t granules) {
  FreeRun* const run = free_.find(FreeState::kDirty, granules);
  if (run == nullptr) return nullptr;
  const uint32_t at = static_cast<uint32_t>(arena_of_run(run).index_of(run));
  const uint32_t last = at + run->length - granules;
  const uint32_t aligned = round_down(last, kGranulesPerHugePage);
  const bool aligns = granules >= kGranulesPerHugePage && aligned >= at && !books.addresses_are_scarce;
  return free_.take(run, (aligns ? aligned : last) - at, granules);
}

Granule* PageHeap::find_clean(uint32_t granules) {
  FreeRun* const run = free_.find(FreeState::kClean, granules);
  return run == nullptr ? nullptr : free_.take(run, offset_by_chance(run->length, granules), granules);
}

// An unmapped run, mapped again.
Granule* PageHeap::find_unmapped(uint32_t granules) {
  FreeRun* const found = free_.find(FreeState::kUnmapped, granules);
  if (found == nullptr) return nullptr;
  Granule* const run = free_.take(found, 0, granules);
  if (arena_of_run(run).map(start_of(run), size_t{granules} * kGranule, &books)) return run;
  free_.put(run, granules, FreeState::kUnmapped);
  return nullptr;
}

// A dirty run that is too short for a span is used all the same where clean neighbours make up the rest: otherwise runs
// of many lengths leave holes, the span touches fresh memory, and the dirty run is given back to make up for it. At
// least half must be dirty, since calloc clears the whole. Of the newest few, the longest.
Granule* PageHeap::find_joined(Locked& lock, uint32_t granules) {
  constexpr int kLook = 32;
  FreeRun* best = nullptr;
  int looked_at = 0;
  for (FreeRun* run = free_.newest(); run != nullptr && looked_at < kLook; run = run->older, ++looked_at) {
    if (run->length < granules / 2 || (best != nullptr && run->length <= best->length)) continue;
    if (FreeRuns::can_join(run, granules)) best = run;
  }
  if (best == nullptr) return nullptr;
  const uint32_t clean = granules - best->length;
  Granule* const run = free_.take_joined(best, granules);
  before_growth(lock, size_t{clean} * kGranule);
  return run;
}

// Never-used granules of an arena, with the clean ones before them, in whole pieces of 2 MiB, so that the pages can be
// huge; a run of that length or more starts at a multiple of it, so that its pages can be moved by whole tables. What
// is left before it and of its last piece is clean and free. None of that where addresses are scarce.
Granule* PageHeap::extend(Arena& arena, uint32_t granules, bool huge_pages) {
  const uint32_t frontier = static_cast<uint32_t>(arena.index_of(arena.frontier()));
  Granule* const old_frontier = arena.frontier();
  FreeRun* const before = FreeRuns::ending_at(arena, old_frontier, FreeState::kClean);
  const uint32_t from = frontier - (before == nullptr ? 0 : before->length);
  const bool aligned = granules >= kGranulesPerHugePage && !books.addresses_are_scarce;
  uint32_t start = aligned ? round_up(from, kGranulesPerHugePage) : from;
  uint32_t end = books.addresses_are_scarce ? start + granules : round_up(start + granules, kGranulesPerHugePage);
  if (!arena.advance(end, &books)) {
    start = from;
    end = from + granules;
    if (!arena.advance(end, &books)) return nullptr;
  }
  if (before != nullptr) free_.take(before);
  if (huge_pages) arena.advise_huge(old_frontier, end - frontier, &books);
  Granule* const all = arena.first() + from;
  all->arena = arena.number();
  start += offset_by_chance(end - start, granules);
  return free_.put_rest(all, end - from, start - from, granules, FreeState::kClean);
}

Granule* PageHeap::extend_any(uint32_t granules, bool huge_pages) {
  Granule* run = nullptr;
  for (uint32_t i = 0; run == nullptr && i < arena_count; ++i) run = extend(arenas[i], granules, huge_pages);
  return run;
}

// The granules from a place on, where they are free and mapped, or never used.
Run PageHeap::find_at(Granule* place, uint32_t granules, bool huge_pages, Arena& arena) {
  if (place == arena.frontier()) {
    const uint32_t from = static_cast<uint32_t>(arena.index_of(place));
    const uint32_t least = from + granules;
    const uint32_t wanted = books.addresses_are_scarce ? least : round_up(least, kGranulesPerHugePage);
    if (!arena.advance(wanted, &books)) return {};
    if (huge_pages) arena.advise_huge(place, wanted - from, &books);
    place->arena = arena.number();
    return {free_.put_rest(place, wanted - from, 0, granules, FreeState::kClean), true};
  }
  if (place > arena.frontier() || !is_free(place) || place->length < granules) return {};
  if (place->state == FreeState::kUnmapped) return {};
  const bool clean = place->state == FreeState::kClean;
  return {free_.take(static_cast<FreeRun*>(place), 0, granules), clean};
}

}  // namespace annex
