// What is dirty goes back to the system, by the rules of commitment.h: by the threads that come by, or by keepers.
#include <algorithm>

#include "os/clock.h"
#include "os/fork.h"
#include "os/options.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

// From here on a run's records, of which the ends alone are used while it is free, are worth a system call: 128 KiB.
constexpr uint32_t kLongRun = (size_t{64} << 20) / kGranule;

constexpr size_t kPurgedAtOnce = size_t{64} << 20;

}  // namespace

bool PageHeap::something_may_be_due(const Locked& lock) const {
  // One thread at a time.
  return commitment::something_may_be_due(books) && (os::options.purge_delay_ms == 0 || Unlocked::count(lock) == 0);
}

// The run goes back, or pages of it do: no huge pages any more in each 2 MiB of which other parts stay. The kernel
// would else join those with what has gone, into a huge page (khugepaged, max_ptes_none).
void PageHeap::end_huge_around(const Locked& lock, Granule* run, uint32_t granules) {
  Arena& arena = arena_of_run(run);
  Granule* const end = run + granules;
  if (arena.huge_begin(run) != run) end_huge(lock, arena, run, run);
  if (arena.huge_begin(end) != end) end_huge(lock, arena, run, end - 1);
}

// The 2 MiB in which a granule of the run lies. Where there was a huge page, memory may be behind all of it, and what
// counts as clean there is dirty from now on.
[[gnu::cold]] void PageHeap::end_huge(const Locked&, Arena& arena, Granule* run, const Granule* granule) {
  if (!arena.end_huge(granule, &books)) return;
  const uint64_t now = os::now_ms();
  Granule* const from = arena.huge_begin(granule);
  Granule* const to = arena.huge_end(granule);
  Granule* head = run;
  while (head > from) head -= length_of(head - 1);
  while (head < to) {
    Granule* next = head + length_of(head);
    if (is_free(head, FreeState::kClean)) {
      Granule* const first = std::max(head, from);
      const uint32_t granules = static_cast<uint32_t>(std::min(next, to) - first);
      free_.take(static_cast<FreeRun*>(head), static_cast<uint32_t>(first - head), granules);
      FreeRun* const joined = free_.put(first, granules, FreeState::kDirty, now);
      next = joined + joined->length;  // what it was joined with, or the run's end that is not in the 2 MiB
    }
    head = next;
  }
}

// Gives the oldest dirty run back, or its end, without the lock for as long as the kernel takes. The bytes; 0 where the
// system can't. *more: with those that become dirty by it.
size_t PageHeap::purge_oldest(Locked& lock, size_t at_most, size_t* more) {
  FreeRun* const oldest = free_.oldest();
  const uint32_t granules = static_cast<uint32_t>(std::min<size_t>(oldest->length, granules_for(at_most)));
  const size_t bytes = size_t{granules} * kGranule;
  Granule* const run = free_.take(oldest, oldest->length - granules, granules);
  // The addresses go back with the memory, for the program to map.
  const bool unmaps = bytes >= (books.addresses_are_scarce ? commitment::kUnmappedIfScarce : commitment::kUnmapped);
  char* const start = start_of(run);
  const size_t before = books.dirty;
  end_huge_around(lock, run, granules);
  *more += books.dirty - before;
  const bool purged = [&] {
    const Unlocked unlocked(lock);
    return unmaps ? os::unmap_at(start, bytes) : os::purge(start, bytes);
  }();
  if (!purged) {
    // Locked in memory (mlock): it stays resident, and what it holds is not zero. Kept as dirty, as if just freed.
    free_.put(run, granules, FreeState::kDirty, os::now_ms());
    return 0;
  }
  FreeRun* const joined = unmaps ? put_unmapped(run, granules, bytes) : free_.put(run, granules, FreeState::kClean);
  if (granules >= kLongRun) purge_records(joined);
  books.purged_total += bytes;
  return bytes;
}

// Gives dirty runs back while there are some that `choose` agrees to, at most as much as is dirty on entry, or becomes
// so by that, nor more than `budget`.
template <class Choose>
size_t PageHeap::purge_while(Locked& lock, Choose choose, size_t budget) {
  size_t total = 0;
  size_t there = books.dirty;
  while (free_.oldest() != nullptr) {
    const size_t wanted = std::min({choose(), budget, there});
    if (wanted == 0) break;
    const size_t purged = purge_oldest(lock, wanted, &there);
    if (purged == 0) break;
    total += purged;
    budget -= std::min(budget, purged);
    there -= std::min(there, purged);
  }
  return total;
}

void PageHeap::purge_expired(Locked& lock, uint64_t now_ms, size_t budget) {
  purge_while(
      lock, [&] { return commitment::is_due(free_.oldest(), now_ms) ? SIZE_MAX : 0; }, budget);
}

size_t PageHeap::apply_growth_rule(Locked& lock, size_t bytes, size_t budget) {
  return purge_while(
      lock, [&] { return commitment::growth_excess(books, bytes); }, budget);
}

// The delay's rule: a run of `bytes` has been given, or taken and is clean. Where there is a keeper it is left to
// that, unless the delay is 0.
void PageHeap::purge_due(Locked& lock, uint64_t now_ms, size_t bytes) {
  commitment::note_time(&books, now_ms);
  if (!something_may_be_due(lock)) return;
  purge_expired(lock, now_ms, os::options.purge_delay_ms == 0 ? SIZE_MAX : std::max(kHugePage, bytes));
}

// The growth rule, before `bytes` of clean memory are touched by a span. Where a keeper keeps up it is left to that.
void PageHeap::before_growth(Locked& lock, size_t bytes) {
  if (os::options.purge_delay_ms < 0) return;
  if (commitment::growth_can_wait(books)) {
    books.growth_left.store(true, std::memory_order_relaxed);
  } else {
    apply_growth_rule(lock, bytes);
  }
}

// Every dirty run; the bytes.
size_t PageHeap::purge_all(Locked& lock) {
  return purge_while(lock, [] { return SIZE_MAX; });
}

void PageHeap::purge_due_if_free(size_t bytes) {
  const uint64_t now = os::now_ms();
  if (!page_heap_lock.try_lock()) return;
  Locked lock{Locked::Already{}};
  purge_due(lock, now, bytes);
}

// --- keepers ---------------------------------------------------------------------------------------------------------

void PageHeap::keeper_comes() {
  const Locked lock;
  ++books.keepers;
}

void PageHeap::keeper_leaves() {
  Locked lock;
  --books.keepers;
  purge_expired(lock, os::now_ms());
}

void PageHeap::keeper_purges_due() {
  Locked lock;
  purge_expired(lock, os::now_ms(), kHugePage);
}

bool PageHeap::keeper_purges_after_growth() {
  if (!books.growth_left.load(std::memory_order_relaxed)) return false;
  Locked lock;
  const bool more = apply_growth_rule(lock, 0, kHugePage) > 0;
  books.growth_left.store(more, std::memory_order_relaxed);
  return more;
}

long PageHeap::purger_purges(bool* small, bool at_once) {
  Locked lock;
  const uint64_t now = os::now_ms();
  commitment::note_time(&books, now);
  if (at_once || now - emptied_ms_ > kEmptyAfterMs) empty_transfer_cache(lock);
  const auto oldest_is_due = [&] { return at_once || commitment::is_due(free_.oldest(), now); };
  const bool gives_back = (at_once || books.keepers == 0) && free_.oldest() != nullptr && oldest_is_due();
  size_t purged = 0;
  if (gives_back) {
    // In pieces: whoever forks waits for the one that is under way.
    purged = purge_while(
        lock, [&] { return oldest_is_due() ? kPurgedAtOnce : 0; }, SIZE_MAX);
  }
  const bool was_small = *small;
  *small = books.live + books.dirty < commitment::kDirtySlack;
  if (*small && was_small) {
    books.purger_runs = false;
    return -1;
  }
  if (free_.oldest() == nullptr) return kNothing;
  // In the past where keepers or the system do not give it back.
  const long due = static_cast<long>(free_.oldest()->freed_ms) + os::options.purge_delay_ms - static_cast<long>(now);
  constexpr long kUntilItMayWorkMs = 1000;
  return std::max(due, gives_back && purged == 0 ? kUntilItMayWorkMs : 0L);
}

void PageHeap::purger_rests() {
  const Locked lock;
  if (rested_with_ == books.purged_total) return;
  rested_with_ = books.purged_total;
  if (purge_side_tables != nullptr) purge_side_tables(lock);
}

void PageHeap::note_purged(size_t bytes) {
  if (bytes == 0) return;
  const Locked lock;
  books.purged_total += bytes;
}

void PageHeap::purger_ended(bool not_made) {
  const uint64_t again_ms = not_made ? os::now_ms() + 1000 : 0;
  const Locked lock;
  books.purger_runs = false;
  books.purger_again_ms = again_ms;
}

// --- memory beforehand -----------------------------------------------------------------------------------------------

bool PageHeap::populate(Locked& lock, size_t bytes, bool huge_pages) {
  const uint32_t granules = static_cast<uint32_t>(granules_for(bytes));
  Granule* run = find_clean(granules);
  if (run == nullptr) run = extend_any(granules, huge_pages);
  if (run == nullptr) return false;
  const bool populated = [&] {
    const Unlocked unlocked(lock);
    return os::populate(start_of(run), bytes);
  }();
  free_.put(run, granules, populated ? FreeState::kDirty : FreeState::kClean, populated ? os::now_ms() : 0);
  return populated;
}

// --- fork ------------------------------------------------------------------------------------------------------------

void PageHeap::hold_lock_for_fork() { os::fork.hold_when(page_heap_lock, Unlocked::none_of_others); }

void PageHeap::after_fork_in_child() {
  Unlocked::forget_others();
  books.keepers = 0;
  books.purger_runs = false;
  books.purger_wanted.store(false, std::memory_order_relaxed);
  books.purger_sleeps.store(false, std::memory_order_relaxed);
}

}  // namespace annex
