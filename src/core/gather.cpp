// Spans of moved pages: see gather.h.
#include "core/gather.h"

#include <algorithm>
#include <array>

#include "core/arena.h"
#include "core/commitment.h"
#include "core/purge.h"
#include "os/clock.h"
#include "os/pages.h"

namespace annex {

namespace {

// Each piece of 2 MiB that pages were moved to can be a mapping of its own, and a process may have 65,530 of them. So
// there may be so many such pieces.
constexpr uint32_t kMostPieces = 16384;
constexpr int kMostRuns = 64;  // that one span is gathered from

struct Source {
  Granule* run;
  uint32_t granules;
};

constinit bool refused = false;  // by the system: it is not asked again

// The whole pieces of a run, as a run within it; none: no granules.
Source whole_pieces(const Arena& arena, Granule* run) {
  const uint32_t at = static_cast<uint32_t>(run - arena.metadata());
  const uint32_t from = round_up(at, kGranulesPerHugePage);
  const uint32_t to = round_down(at + run->length, kGranulesPerHugePage);
  return to > from ? Source{run + (from - at), to - from} : Source{run, 0};
}

// Of the oldest dirty runs, as many whole pieces as make `wanted` granules: calls use(run, pieces) for each; returns
// how many granules those are.
template <class Use>
uint32_t for_each_source(const Arena& arena, uint32_t wanted, Use use) {
  uint32_t found = 0;
  int looked_at = 0;
  for (Granule* run = commitment.oldest; run != nullptr && found < wanted && looked_at < kMostRuns; ++looked_at) {
    Granule* const newer = run->age.newer;
    Source pieces = arena.contains(run) ? whole_pieces(arena, run) : Source{run, 0};
    pieces.granules = std::min(pieces.granules, wanted - found);
    if (pieces.granules > 0) {
      found += pieces.granules;
      use(run, pieces);
    }
    run = newer;
  }
  return found;
}

Granule* take_target(Arena& arena, uint32_t whole) {
  Granule* run = arena.take_clean(whole + kGranulesPerHugePage - 1);
  if (run == nullptr) return arena.take_frontier(whole, span_wants_huge_pages(size_t{whole} * kGranule));
  const uint32_t at = static_cast<uint32_t>(run - arena.metadata());
  const uint32_t front = round_up(at, kGranulesPerHugePage) - at;
  const uint32_t back = kGranulesPerHugePage - 1 - front;
  run[front].kind = run[front + whole - 1].kind = Kind::kNone;
  if (front > 0) arena.put_clean(run, front);
  if (back > 0) arena.put_clean(run + front + whole, back);
  return run + front;
}

// Without the lock. How many granules have been moved, from the first source on.
uint32_t move(const Arena& arena, const Source* sources, int count, Granule* target) {
  uint32_t moved = 0;
  for (const Source* source = sources; source < sources + count; ++source) {
    const size_t bytes = size_t{source->granules} * kGranule;
    if (!os::move_pages(arena.start_of(source->run), arena.start_of(target + moved), bytes)) break;
    moved += source->granules;
  }
  return moved;
}

// Moves pages to a part of what has been set aside, from its front on. How many granules are dirty then.
uint32_t fill(Arena& arena, Granule* part, uint32_t granules) {
  std::array<Source, kMostRuns> sources;
  int count = 0;
  for_each_source(arena, granules, [&](Granule* run, Source pieces) {
    arena.take_part(run, static_cast<uint32_t>(pieces.run - run), pieces.granules);
    set_aside(pieces.run, pieces.granules);
    sources[count++] = pieces;
  });
  if (count == 0) return 0;
  const uint32_t moved = [&] {
    const LetGo let_go;
    return move(arena, sources.data(), count, part);
  }();
  refused = moved == 0;
  const uint64_t now = os::now_ms();
  uint32_t at = 0;
  for (const Source* source = sources.data(); source < sources.data() + count; at += source->granules, ++source) {
    if (at < moved) {
      arena.note_moved(source->run, part + at, source->granules);
      arena.put_clean(source->run, source->granules);
    } else {
      arena.put_dirty(source->run, source->granules, now);
    }
  }
  return moved;
}

// The first granules of what has been set aside become the caller's, the others free again.
Granule* cut(Arena& arena, Granule* run, uint32_t whole, uint32_t granules, bool rest_is_dirty) {
  run->kind = run[whole - 1].kind = Kind::kNone;
  if (granules > 0) run[granules - 1].kind = Kind::kNone;
  if (granules == whole) return run;
  if (rest_is_dirty) {
    arena.put_dirty(run + granules, whole - granules, os::now_ms());
  } else {
    arena.put_clean(run + granules, whole - granules);
  }
  return run;
}

// Which pieces of the first arena pages were ever moved to, and how many.
constinit uint64_t moved_to[kMostOfPrimary / kHugePage / 64 + 1];
constinit uint32_t pieces_moved_to = 0;

void note_moved_to(const Arena& arena, const Granule* target, uint32_t granules) {
  const size_t from = static_cast<size_t>(target - arena.metadata()) / kGranulesPerHugePage;
  for (size_t piece = from; piece < from + granules / kGranulesPerHugePage; ++piece) {
    const uint64_t bit = uint64_t{1} << (piece % 64);
    if ((moved_to[piece / 64] & bit) == 0) ++pieces_moved_to;
    moved_to[piece / 64] |= bit;
  }
}

// Not where addresses are scarce, as what is moved gets new ones.
bool can_move_to(uint32_t granules) {
  return !refused && !addresses_are_scarce && pieces_moved_to + granules / kGranulesPerHugePage <= kMostPieces;
}

}  // namespace

Granule* take_gathered(uint32_t granules) {
  Arena& arena = arenas[0];
  const uint32_t whole = round_up(granules, kGranulesPerHugePage);
  if (!can_move_to(whole) || for_each_source(arena, whole, [](Granule*, Source) {}) < whole / 2) return nullptr;
  Granule* target = take_target(arena, whole);
  if (target == nullptr) return nullptr;
  note_moved_to(arena, target, whole);
  set_aside(target, whole);
  const uint32_t moved = fill(arena, target, whole);
  if (moved == 0) {
    cut(arena, target, whole, 0, false);
    return nullptr;
  }
  if (moved < whole) before_growth(size_t{whole - moved} * kGranule);
  return cut(arena, target, whole, granules, moved == whole);
}

Granule* take_to_move_into(uint32_t kept, uint32_t granules) {
  Arena& arena = arenas[0];
  const uint32_t whole = round_up(granules, kGranulesPerHugePage);
  const uint32_t front = std::min(round_up(kept, kGranulesPerHugePage), whole);
  if (!can_move_to(whole)) return nullptr;
  Granule* target = take_target(arena, whole);
  if (target == nullptr) return nullptr;
  note_moved_to(arena, target, whole);
  set_aside(target, whole);
  const uint32_t moved = fill(arena, target + front, whole - front);
  if (front + moved < whole) before_growth(size_t{whole - front - moved} * kGranule);
  return cut(arena, target, whole, granules, moved > 0 && front + moved == whole);
}

}  // namespace annex
