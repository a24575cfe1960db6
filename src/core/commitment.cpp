// Balanced commitment: see commitment.h, where the policy stands as formulas.
#include "core/commitment.h"

#include <algorithm>

#include "core/arena_lock.h"
#include "os/options.h"
#include "os/pages.h"

namespace annex {

constinit Commitment commitment;
constinit bool addresses_are_scarce = false;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallestStep = kMiB;

constexpr size_t kLeastSlack = kMiB / 4;

// What may be dirty although the heap grows.
size_t slack() {
  const size_t touched = commitment.touched.load(std::memory_order_relaxed);
  return std::max(kLeastSlack, touched / 8);
}

size_t slabs() { return commitment.live - commitment.spans; }
size_t touched_of_slabs() { return commitment.touched.load(std::memory_order_relaxed) - commitment.spans; }

// Whether enough of so many bytes is touched that huge pages, which touch all, cost little memory.
bool well_used(ptrdiff_t touched, ptrdiff_t bytes) { return touched >= bytes / 4 * 3; }

bool proved_to_grow() {
  const size_t touched = commitment.touched.load(std::memory_order_relaxed);
  if (touched < kProofOfGrowth) return false;
  if (!well_used(static_cast<ptrdiff_t>(touched), static_cast<ptrdiff_t>(commitment.live))) return false;
  const auto taken = static_cast<ptrdiff_t>(slabs() - commitment.slabs_then);
  const auto used = static_cast<ptrdiff_t>(touched_of_slabs() - commitment.touched_then);
  return well_used(used, taken);
}

bool is_filled(const Granule* span, const char* start) {
  constexpr size_t kLook = 16;  // pages
  const size_t step = span->span.bytes / kLook;
  size_t written = 0;
  while (written < kLook && os::is_written(start + written * step + step / 2)) ++written;
  return written == kLook;
}

bool spans_are_filled() {
  return commitment.filled && commitment.touched.load(std::memory_order_relaxed) >= kProofOfGrowth;
}

}  // namespace

size_t commit_step(size_t committed) {
  return addresses_are_scarce ? kSmallestStep : std::clamp(committed / 4, kSmallestStep, kLargestCommitStep);
}

bool slabs_want_huge_pages() {
  if (os::options.huge_pages != os::HugePages::kAuto) return os::options.huge_pages == os::HugePages::kAlways;
  return proved_to_grow();
}

bool first_slabs_want_clean_memory() { return commitment.dirty < kDirtySlack && !slabs_want_huge_pages(); }

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

void note_fresh_span(const Granule* span) { commitment.fresh_span = span; }

void note_span_gone(const Granule* span, const char* start, bool moved) {
  if (span != commitment.fresh_span) return;
  if (!moved) commitment.filled = is_filled(span, start);
  commitment.fresh_span = nullptr;
}

void age_insert(Granule* run, Granule* older, uint64_t freed_ms) {
  run->age.freed_ms = freed_ms;
  run->age.older = older;
  run->age.newer = older != nullptr ? older->age.newer : commitment.oldest;
  (run->age.older != nullptr ? run->age.older->age.newer : commitment.oldest) = run;
  (run->age.newer != nullptr ? run->age.newer->age.older : commitment.newest) = run;
}

void age_remove(Granule* run) {
  (run->age.older != nullptr ? run->age.older->age.newer : commitment.oldest) = run->age.newer;
  (run->age.newer != nullptr ? run->age.newer->age.older : commitment.newest) = run->age.older;
}

void age_replace(Granule* run, Granule* by) {
  by->age.freed_ms = run->age.freed_ms;
  by->age.older = run->age.older;
  by->age.newer = run->age.newer;
  (by->age.older != nullptr ? by->age.older->age.newer : commitment.oldest) = by;
  (by->age.newer != nullptr ? by->age.newer->age.older : commitment.newest) = by;
}

bool something_may_be_due() {
  if (os::options.purge_delay_ms == 0) return commitment.dirty > 0;
  return commitment.dirty >= kDirtySlack && commitment.keepers == 0 && LetGo::count() == 0;
}

bool is_due(const Granule* dirty_run, uint64_t now_ms) {
  const int64_t delay = os::options.purge_delay_ms;
  // Not the difference: the run may have been freed after the clock was read.
  return delay >= 0 && dirty_run->age.freed_ms + static_cast<uint64_t>(delay) <= now_ms;
}

size_t growth_excess(size_t bytes) {
  const size_t resident = commitment.live + commitment.dirty + bytes;
  if (commitment.dirty <= slack() || resident <= commitment.peak) return 0;
  return round_up(std::min(commitment.dirty - slack(), resident - commitment.peak), kHugePage);
}

bool growth_can_wait() { return commitment.keepers > 0 && commitment.dirty <= 2 * slack(); }

void want_purger() {
  const bool useful = commitment.live >= kDirtySlack && os::options.purge_delay_ms > 0;
  if (!useful || commitment.purger_runs || os::options.background != os::Background::kAll) return;
  commitment.purger_runs = true;
  commitment.purger_wanted.store(true, std::memory_order_relaxed);
}

}  // namespace annex
