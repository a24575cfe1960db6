// Balanced commitment: see commitment.h, where the policy stands as formulas.
#include "core/commitment.h"

#include <sched.h>

#include <algorithm>

#include "core/arena.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/helper_thread.h"
#include "os/message.h"
#include "os/options.h"
#include "os/pages.h"

namespace annex {

constinit Commitment commitment;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallestStep = kMiB;
constexpr size_t kLargestStep = 64 * kMiB;

// Gives the oldest dirty run back, or its front, without the lock for as long as the kernel takes. The bytes; 0 where
// the system can't.
size_t purge_oldest(size_t at_most) {
  Granule* run = commitment.oldest;
  Arena& arena = *arena_of(run);
  const uint32_t granules = static_cast<uint32_t>(std::min<size_t>(run->length, (at_most + kGranule - 1) / kGranule));
  const size_t bytes = size_t{granules} * kGranule;
  run = arena.take_for_purge(run, granules);
  ++commitment.purging;
  arena_lock.unlock();
  const bool purged = os::purge(arena.start_of(run), bytes);
  arena_lock.lock();
  --commitment.purging;
  if (!purged) {
    // Locked in memory (mlock): it stays resident, and what it holds is not zero. Kept as dirty, as if just freed.
    arena.put_dirty(run, granules, os::now_ms());
    return 0;
  }
  arena.put_clean(run, granules);
  commitment.purged_total += bytes;
  return bytes;
}

// Gives dirty runs back while there are some that `choose` agrees to, at most as much as is dirty on entry, nor more
// than `budget`.
template <class Choose>
size_t purge_while(Choose choose, size_t budget = SIZE_MAX) {
  size_t total = 0;
  budget = std::min(budget, commitment.dirty);
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

bool expired(const Granule* run, uint64_t now) {
  const int64_t delay = os::options.purge_delay_ms;
  // Not the difference: the run may have been freed after `now` was read.
  return delay >= 0 && run->freed_ms + static_cast<uint64_t>(delay) <= now;
}

void purge_expired(uint64_t now, size_t budget = SIZE_MAX) {
  purge_while([now] { return expired(commitment.oldest, now) ? SIZE_MAX : 0; }, budget);
}

// What may be dirty although the heap grows.
size_t slack() { return std::max(kDirtySlack, commitment.live / 8); }

size_t apply_growth_rule(size_t bytes, size_t budget = SIZE_MAX) {
  const auto excess = [bytes]() -> size_t {
    const size_t resident = commitment.live + commitment.dirty + bytes;
    if (commitment.dirty <= slack() || resident <= commitment.peak) return 0;
    const size_t needless = std::min(commitment.dirty - slack(), resident - commitment.peak);
    return (needless + kHugePage - 1) & ~(kHugePage - 1);
  };
  return purge_while(excess, budget);
}

size_t slabs() { return commitment.live - commitment.spans; }
size_t touched_of_slabs() { return commitment.touched.load(std::memory_order_relaxed) - commitment.spans; }

bool proved_to_grow() {
  const size_t touched = commitment.touched.load(std::memory_order_relaxed);
  if (touched < kProofOfGrowth || touched < commitment.live / 2) return false;
  const auto taken = static_cast<ptrdiff_t>(slabs() - commitment.slabs_then);
  const auto used = static_cast<ptrdiff_t>(touched_of_slabs() - commitment.touched_then);
  return used >= taken / 2;
}

void look_at_fresh_span() {
  constexpr size_t kLook = 16;  // pages
  const Granule* span = commitment.fresh_span;
  char* const start = start_of(span);
  const size_t step = span->bytes / kLook;
  size_t resident = 0;
  while (resident < kLook && os::is_resident(start + resident * step + step / 2)) ++resident;
  commitment.filled = resident == kLook;
  if (commitment.filled) commitment.fresh_span = nullptr;  // no need to look again
}

bool spans_are_filled() {
  if (commitment.touched.load(std::memory_order_relaxed) < kProofOfGrowth) return false;
  if (commitment.fresh_span != nullptr) look_at_fresh_span();
  return commitment.filled;
}

}  // namespace

size_t commit_step(size_t committed) { return std::clamp(committed / 4, kSmallestStep, kLargestStep); }

bool slabs_want_huge_pages() {
  if (os::options.huge_pages != os::HugePages::kAuto) return os::options.huge_pages == os::HugePages::kAlways;
  return proved_to_grow();
}

void note_fresh_slabs() {
  commitment.slabs_then = slabs();
  commitment.touched_then = touched_of_slabs();
}

bool span_wants_huge_pages(size_t bytes) {
  if (os::options.huge_pages != os::HugePages::kAuto) return os::options.huge_pages == os::HugePages::kAlways;
  if (bytes >= kHugePage) return bytes <= commitment.live && (proved_to_grow() || spans_are_filled());
  const size_t range = (bytes + kGranule - 1) & ~(kGranule - 1);
  return proved_to_grow() && bytes >= range / 8 * 7;
}

void note_fresh_span(Granule* span) { commitment.fresh_span = span; }

void note_span_gone(Granule* span, bool moved) {
  if (span != commitment.fresh_span) return;
  if (!moved) look_at_fresh_span();
  commitment.fresh_span = nullptr;
}

void age_insert(Granule* run, Granule* older, uint64_t freed_ms) {
  run->freed_ms = freed_ms;
  run->older = older;
  run->newer = older != nullptr ? older->newer : commitment.oldest;
  (run->older != nullptr ? run->older->newer : commitment.oldest) = run;
  (run->newer != nullptr ? run->newer->older : commitment.newest) = run;
}

void age_remove(Granule* run) {
  (run->older != nullptr ? run->older->newer : commitment.oldest) = run->newer;
  (run->newer != nullptr ? run->newer->older : commitment.newest) = run->older;
}

void age_replace(Granule* run, Granule* by) {
  by->freed_ms = run->freed_ms;
  by->older = run->older;
  by->newer = run->newer;
  (by->older != nullptr ? by->older->newer : commitment.oldest) = by;
  (by->newer != nullptr ? by->newer->older : commitment.newest) = by;
}

bool something_may_be_due() {
  if (os::options.purge_delay_ms == 0) return commitment.dirty > 0;
  return commitment.dirty >= kDirtySlack && commitment.keepers == 0 && commitment.purging == 0;
}

void give_back_due(uint64_t now_ms, size_t bytes) {
  if (!something_may_be_due()) return;
  purge_expired(now_ms, os::options.purge_delay_ms == 0 ? SIZE_MAX : std::max(kHugePage, bytes));
}

void before_growth(size_t bytes) {
  if (os::options.purge_delay_ms < 0) return;
  if (commitment.keepers > 0 && commitment.dirty <= 2 * slack()) {
    commitment.growth_left.store(true, std::memory_order_relaxed);
  } else {
    apply_growth_rule(bytes);
  }
}

void want_purger() {
  const bool useful = commitment.live >= kDirtySlack && os::options.purge_delay_ms > 0;
  if (!useful || commitment.purger_runs || os::options.background != os::Background::kAll) return;
  commitment.purger_runs = true;
  commitment.purger_wanted.store(true, std::memory_order_relaxed);
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
  const uint64_t since = commitment.oldest != nullptr ? commitment.oldest->freed_ms : now;
  return static_cast<long>(since) + os::options.purge_delay_ms - static_cast<long>(now);
}

bool purge_after_growth() {
  if (!commitment.growth_left.load(std::memory_order_relaxed)) return false;
  os::Guard guard(arena_lock);
  const bool more = apply_growth_rule(0, kHugePage) > 0;
  commitment.growth_left.store(more, std::memory_order_relaxed);
  return more;
}

void commitment_before_fork() {
  arena_lock.lock();
  while (commitment.purging > 0) {
    arena_lock.unlock();
    sched_yield();
    arena_lock.lock();
  }
  os::fork.keep(arena_lock);
}

void commitment_after_fork() {
  commitment.keepers = 0;
  commitment.purger_runs = false;
  commitment.purger_wanted.store(false, std::memory_order_relaxed);
  os::forget_helpers_after_fork();
}

}  // namespace annex
