// A large span made of pages that lie elsewhere: the pages of free runs are moved to where the span is, 2 MiB at a
// time.
//
// Free runs of many lengths leave holes that no large span fits. Without this the span would touch fresh memory, and as
// much as it touches would be given back for it: a fault for each page and a page table torn down, where moving a whole
// page table takes a microsecond (docs/commitment.md, "What pages cost"). Addresses cost nothing, so the span gets new
// ones.
#include <algorithm>
#include <array>

#include "os/clock.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

// Each piece of 2 MiB that pages were moved to can be a mapping of its own, and a process may have 65,530 of them. So
// there may be so many such pieces.
constexpr uint32_t kMostPieces = 16384;
constexpr int kMostRuns = 64;  // that one span is gathered from

// Whole pieces within a free run; none: no granules.
struct Source {
  uint32_t offset;
  uint32_t granules;
};

Source whole_pieces(const Arena& arena, const FreeRun* run) {
  const uint32_t at = static_cast<uint32_t>(arena.index_of(run));
  const uint32_t from = round_up(at, kGranulesPerHugePage);
  const uint32_t to = round_down(at + run->length, kGranulesPerHugePage);
  return {from - at, to > from ? to - from : 0};
}

// Of the oldest dirty runs, as many whole pieces as make `wanted` granules: calls use(run, pieces) for each; returns
// how many granules those are.
template <class Use>
uint32_t for_each_source(const FreeRuns& free_runs, const Arena& arena, uint32_t wanted, Use use) {
  uint32_t found = 0;
  int looked_at = 0;
  for (FreeRun* run = free_runs.oldest(); run != nullptr && found < wanted && looked_at < kMostRuns; ++looked_at) {
    FreeRun* const newer = run->newer;
    Source pieces = &arena_of_run(run) == &arena ? whole_pieces(arena, run) : Source{0, 0};
    pieces.granules = std::min(pieces.granules, wanted - found);
    if (pieces.granules > 0) {
      found += pieces.granules;
      use(run, pieces);
    }
    run = newer;
  }
  return found;
}

// Which pieces of the first arena pages were ever moved to.
constinit uint64_t moved_to[kMostOfPrimary / kHugePage / 64 + 1];

}  // namespace

// So many clean granules, whole pieces, to which pages will be moved.
Granule* PageHeap::find_target(Arena& arena, uint32_t whole) {
  const uint32_t longer = whole + kGranulesPerHugePage - 1;
  FreeRun* const clean = free_.find(FreeState::kClean, longer);
  Granule* target = nullptr;
  if (clean != nullptr && &arena_of_run(clean) == &arena) {
    const uint32_t at = static_cast<uint32_t>(arena.index_of(clean));
    target = free_.take(clean, round_up(at, kGranulesPerHugePage) - at, whole);
  } else {
    target = extend(arena, whole, commitment::span_wants_huge_pages(books, size_t{whole} * kGranule));
  }
  if (target == nullptr) return nullptr;
  const size_t from = arena.index_of(target) / kGranulesPerHugePage;
  for (size_t piece = from; piece < from + whole / kGranulesPerHugePage; ++piece) {
    const uint64_t bit = uint64_t{1} << (piece % 64);
    if ((moved_to[piece / 64] & bit) == 0) ++pieces_moved_to_;
    moved_to[piece / 64] |= bit;
  }
  return target;
}

// Moves dirty pages to a part of a target, from its front on. How many granules are dirty then.
uint32_t PageHeap::fill(Locked& lock, Arena& arena, Granule* part, uint32_t granules) {
  struct Taken {
    Granule* run;
    uint32_t granules;
  };
  std::array<Taken, kMostRuns> sources;
  int count = 0;
  for_each_source(free_, arena, granules, [&](FreeRun* run, Source pieces) {
    sources[count++] = {free_.take(run, pieces.offset, pieces.granules), pieces.granules};
  });
  if (count == 0) return 0;
  uint32_t moved = 0;
  {
    const Unlocked unlocked(lock);
    for (const Taken* source = sources.data(); source < sources.data() + count; ++source) {
      const size_t bytes = size_t{source->granules} * kGranule;
      if (!os::move_pages(arena.start_of(source->run), arena.start_of(part + moved), bytes)) break;
      moved += source->granules;
    }
  }
  moving_refused_ = moved == 0;
  const uint64_t now = os::now_ms();
  uint32_t at = 0;
  for (const Taken* source = sources.data(); source < sources.data() + count; at += source->granules, ++source) {
    if (at < moved) {
      arena.note_moved(source->run, part + at, source->granules, &books);
      free_.put(source->run, source->granules, FreeState::kClean);
    } else {
      free_.put(source->run, source->granules, FreeState::kDirty, now);
    }
  }
  return moved;
}

// Not where addresses are scarce, as what is moved gets new ones.
bool PageHeap::can_move_to(uint32_t granules) const {
  return !moving_refused_ && !books.addresses_are_scarce &&
         pieces_moved_to_ + granules / kGranulesPerHugePage <= kMostPieces;
}

// A run that is at least half dirty and for the rest clean, and starts at a multiple of 2 MiB. nullptr where too little
// is dirty in whole pieces of 2 MiB, or nothing can be moved.
Granule* PageHeap::gather(Locked& lock, uint32_t granules) {
  Arena& arena = arenas[0];  // the one with fast paths; moved_to is its
  const uint32_t whole = round_up(granules, kGranulesPerHugePage);
  if (!can_move_to(whole) || for_each_source(free_, arena, whole, [](FreeRun*, Source) {}) < whole / 2) return nullptr;
  Granule* const target = find_target(arena, whole);
  if (target == nullptr) return nullptr;
  const uint32_t moved = fill(lock, arena, target, whole);
  if (moved == 0) {
    free_.put(target, whole, FreeState::kClean);
    return nullptr;
  }
  if (moved < whole) before_growth(lock, size_t{whole - moved} * kGranule);
  return keep_front(target, whole, granules, moved == whole);
}

// The same for a span whose first `kept` granules are to be moved to it from where it was: they are clean, and what
// follows is dirty as far as it could be gathered. nullptr where nothing can be moved.
Granule* PageHeap::gather_behind(Locked& lock, uint32_t kept, uint32_t granules) {
  Arena& arena = arenas[0];
  const uint32_t whole = round_up(granules, kGranulesPerHugePage);
  const uint32_t front = std::min(round_up(kept, kGranulesPerHugePage), whole);
  if (!can_move_to(whole)) return nullptr;
  Granule* const target = find_target(arena, whole);
  if (target == nullptr) return nullptr;
  const uint32_t moved = fill(lock, arena, target + front, whole - front);
  if (front + moved < whole) before_growth(lock, size_t{whole - front - moved} * kGranule);
  return keep_front(target, whole, granules, moved > 0 && front + moved == whole);
}

// The first granules of a target; the others are free again.
Granule* PageHeap::keep_front(Granule* target, uint32_t whole, uint32_t granules, bool rest_is_dirty) {
  return rest_is_dirty ? free_.put_rest(target, whole, 0, granules, FreeState::kDirty, os::now_ms())
                       : free_.put_rest(target, whole, 0, granules, FreeState::kClean);
}

}  // namespace annex
