// Page faults ahead of need: see fault_ahead.h.
#include "core/fault_ahead.h"

#include <algorithm>

#include "core/arena.h"
#include "core/commitment.h"
#include "os/clock.h"
#include "os/options.h"
#include "os/pages.h"

namespace annex {

namespace {

constexpr size_t kShare = 32;  // of the heap
constexpr size_t kLargestSmallPiece = size_t{256} << 10;
constexpr size_t kLeastBeforeHuge = kHugePage / 2;
constexpr size_t kMostBeforeHuge = 2 * kHugePage;

constinit size_t peak_seen = 0;
constinit size_t owed = 0;

Granule* take_piece(uint32_t granules, bool huge) {
  for (uint32_t i = 0; i < arena_count; ++i) {
    if (Granule* run = arenas[i].take_clean(granules)) return run;
  }
  for (uint32_t i = 0; i < arena_count; ++i) {
    if (Granule* run = arenas[i].take_frontier(granules, huge)) return run;
  }
  return nullptr;
}

}  // namespace

bool fault_ahead() {
  if (__atomic_load_n(&commitment.peak, __ATOMIC_RELAXED) == peak_seen && owed == 0) return false;
  os::Guard guard(arena_lock);
  const bool huge = slabs_want_huge_pages();
  const size_t share = (commitment.live / kShare) & ~(kGranule - 1);
  const bool by_huge_page = huge && share >= kHugePage * 3 / 4;
  const size_t piece = by_huge_page ? kHugePage : std::clamp(share, kGranule, kLargestSmallPiece);
  if (commitment.peak != peak_seen) {
    peak_seen = commitment.peak;
    const size_t ahead =
        by_huge_page ? std::clamp(share - std::min(share, kHugePage), kLeastBeforeHuge, kMostBeforeHuge) : piece;
    owed = ahead - std::min(commitment.dirty, ahead);
  }
  if (owed == 0 || os::options.purge_delay_ms == 0) {
    owed = 0;
    return false;
  }
  owed -= std::min(owed, piece);
  const uint32_t granules = static_cast<uint32_t>(piece / kGranule);
  Granule* run = take_piece(granules, huge);
  if (run == nullptr) {
    owed = 0;
    return false;
  }
  Arena& arena = *arena_of(run);
  run->kind = run[granules - 1].kind = Kind::kPurging;
  run->length = run[granules - 1].length = granules;
  ++commitment.purging;
  arena_lock.unlock();
  const bool populated = os::populate(arena.start_of(run), piece);
  arena_lock.lock();
  --commitment.purging;
  if (populated) {
    arena.put_dirty(run, granules, os::now_ms());
  } else {
    arena.put_clean(run, granules);
    owed = 0;
  }
  return owed > 0;
}

}  // namespace annex
