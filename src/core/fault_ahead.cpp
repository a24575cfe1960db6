// Page faults ahead of need: see fault_ahead.h.
#include "core/fault_ahead.h"

#include <algorithm>
#include <atomic>

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

// Written with the arena lock held; read without it, to see that there is nothing to do.
std::atomic<size_t> peak_seen{0};
std::atomic<size_t> owed{0};
std::atomic<bool> populating{false};  // a thread does, at this moment

bool needless() {
  return populating.load(std::memory_order_relaxed) ||
         (owed.load(std::memory_order_relaxed) == 0 &&
          __atomic_load_n(&commitment.peak, __ATOMIC_RELAXED) == peak_seen.load(std::memory_order_relaxed));
}

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
  if (needless()) return false;
  os::Guard guard(arena_lock);
  if (needless()) return false;  // another thread was faster
  const bool huge = slabs_want_huge_pages();
  const size_t share = (commitment.live / kShare) & ~(kGranule - 1);
  const bool by_huge_page = huge && share >= kHugePage * 3 / 4;
  const size_t piece = by_huge_page ? kHugePage : std::clamp(share, kGranule, kLargestSmallPiece);
  if (commitment.peak != peak_seen) {
    peak_seen = commitment.peak;
    const size_t ahead =
        by_huge_page ? std::clamp(share - std::min(share, kHugePage), kLeastBeforeHuge, kMostBeforeHuge) : piece;
    owed = ahead - std::min<size_t>(commitment.dirty, ahead);
  }
  if (owed == 0 || os::options.purge_delay_ms == 0) {
    owed = 0;
    return false;
  }
  owed -= std::min<size_t>(owed, piece);
  const uint32_t granules = static_cast<uint32_t>(piece / kGranule);
  Granule* run = take_piece(granules, huge);
  if (run == nullptr) {
    owed = 0;
    return false;
  }
  Arena& arena = *arena_of(run);
  set_aside(run, granules);
  populating = true;
  const bool populated = [&] {
    const LetGo let_go;
    return os::populate(arena.start_of(run), piece);
  }();
  populating = false;
  if (populated) {
    arena.put_dirty(run, granules, os::now_ms());
  } else {
    arena.put_clean(run, granules);
    owed = 0;
  }
  return owed > 0;
}

}  // namespace annex
