// What goes back to the system: see purge.h.
#include "core/purge.h"

#include <algorithm>

#include "core/arena.h"
#include "core/commitment.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/helper_thread.h"
#include "os/options.h"
#include "os/pages.h"

namespace annex {

namespace {

// From here on a run's metadata, of which the ends alone are used while it is free, is worth a system call: 128 KiB.
constexpr uint32_t kLongRun = (size_t{64} << 20) / kGranule;

// Shorter ones are soon used again, and each may be a mapping of its own.
uint32_t unmapped_from() {
  constexpr size_t kScarce = size_t{1} << 20;
  constexpr size_t kAbundant = size_t{32} << 20;
  return static_cast<uint32_t>((addresses_are_scarce ? kScarce : kAbundant) / kGranule);
}

// Gives the oldest dirty run back, or its front, without the lock for as long as the kernel takes. The bytes; 0 where
// the system can't.
size_t purge_oldest(size_t at_most) {
  Granule* run = commitment.oldest;
  Arena& arena = *arena_of(run);
  const uint32_t granules = static_cast<uint32_t>(std::min<size_t>(run->length, (at_most + kGranule - 1) / kGranule));
  const size_t bytes = size_t{granules} * kGranule;
  run = arena.take_for_purge(run, granules);
  // The addresses go back with the memory, for the program to map.
  const bool unmaps = granules >= unmapped_from();
  char* const start = arena.start_of(run);
  const bool purged = [&] {
    const LetGo let_go;
    return unmaps ? os::unmap_at(start, bytes) : os::purge(start, bytes);
  }();
  if (!purged) {
    // Locked in memory (mlock): it stays resident, and what it holds is not zero. Kept as dirty, as if just freed.
    arena.put_dirty(run, granules, os::now_ms());
    return 0;
  }
  Granule* const joined = unmaps ? arena.put_unmapped(run, granules, bytes) : arena.put_clean(run, granules);
  if (granules >= kLongRun) arena.purge_metadata(joined);
  commitment.purged_total += bytes;
  return bytes;
}

// Gives dirty runs back while there are some that `choose` agrees to, at most as much as is dirty on entry, nor more
// than `budget`.
template <class Choose>
size_t purge_while(Choose choose, size_t budget = SIZE_MAX) {
  size_t total = 0;
  budget = std::min<size_t>(budget, commitment.dirty);
  while (commitment.oldest != nullptr && budget > 0) {
    const size_t wanted = std::min(choose(), budget);
    if (wanted == 0) break;
    const size_t purged = purge_oldest(wanted);
    if (purged == 0) break;
    total += purged;
    budget -= std::min(budget, purged);
  }
  return total;
}

void purge_expired(uint64_t now, size_t budget = SIZE_MAX) {
  purge_while([now] { return is_due(commitment.oldest, now) ? SIZE_MAX : 0; }, budget);
}

size_t apply_growth_rule(size_t bytes, size_t budget = SIZE_MAX) {
  return purge_while([bytes] { return growth_excess(bytes); }, budget);
}

}  // namespace

void give_back_due(uint64_t now_ms, size_t bytes) {
  if (!something_may_be_due()) return;
  purge_expired(now_ms, os::options.purge_delay_ms == 0 ? SIZE_MAX : std::max(kHugePage, bytes));
}

void before_growth(size_t bytes) {
  if (os::options.purge_delay_ms < 0) return;
  if (growth_can_wait()) {
    commitment.growth_left.store(true, std::memory_order_relaxed);
  } else {
    apply_growth_rule(bytes);
  }
}

size_t purge_all_locked() {
  return purge_while([] { return SIZE_MAX; });
}

void keeper_comes() {
  os::Guard guard(arena_lock);
  ++commitment.keepers;
}

void keeper_leaves() {
  os::Guard guard(arena_lock);
  --commitment.keepers;
  purge_expired(os::now_ms());
}

void purge_due() {
  os::Guard guard(arena_lock);
  purge_expired(os::now_ms(), kHugePage);
}

long purge_and_wait_ms(bool* small) {
  os::Guard guard(arena_lock);
  const uint64_t now = os::now_ms();
  if (commitment.keepers == 0) purge_expired(now);
  const bool was_small = *small;
  *small = commitment.live + commitment.dirty < kDirtySlack;
  if (*small && was_small) {
    commitment.purger_runs = false;
    return -1;
  }
  const uint64_t since = commitment.oldest != nullptr ? commitment.oldest->age.freed_ms : now;
  return static_cast<long>(since) + os::options.purge_delay_ms - static_cast<long>(now);
}

bool purge_after_growth() {
  if (!commitment.growth_left.load(std::memory_order_relaxed)) return false;
  os::Guard guard(arena_lock);
  const bool more = apply_growth_rule(0, kHugePage) > 0;
  commitment.growth_left.store(more, std::memory_order_relaxed);
  return more;
}

void purge_before_fork() { os::fork.hold_when(arena_lock, LetGo::none_of_others); }

void purge_after_fork() {
  LetGo::forget_others();
  commitment.keepers = 0;
  commitment.purger_runs = false;
  commitment.purger_wanted.store(false, std::memory_order_relaxed);
  os::forget_helpers_after_fork();
}

}  // namespace annex
