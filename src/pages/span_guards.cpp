// What lies around slabs and spans in the hardened build, and is nobody's to use: see page_heap.h.
#include "os/guards.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

constexpr uint32_t kBehind = 1;  // granules behind a span

}  // namespace

// Not where addresses are scarce, or what is writable is limited: guards split long free runs, and what is unreadable
// can't be counted on to be writable again.
bool PageHeap::guards_wanted() const { return kGuards && addresses_abound(); }

// Granules for a span, and for the guards around it. The first guard is as long as the span is aligned.
uint32_t PageHeap::guarded_granules(const Want& want, uint32_t* before) const {
  *before = want.use == Use::kSpan && guards_wanted() ? want.alignment : 0;
  return *before > 0 ? *before + want.granules + kBehind : want.granules;
}

// Guards are runs of their own, which nothing joins; the granules between them.
Granule* PageHeap::put_guards_around(Granule* run, uint32_t before, uint32_t granules) {
  Granule* const between = run + before;
  Granule* const behind = between + granules;
  between->arena = behind->arena = run->arena;
  set_ends(run, before, Kind::kTaken);
  set_ends(between, granules, Kind::kTaken);
  set_ends(behind, kBehind, Kind::kTaken);
  return between;
}

// What was taken for a span of so many granules that is nobody's any more.
Granule* PageHeap::without_guards(Span* span, uint32_t* granules) {
  Granule* const run = span - span->before;
  *granules += span->before + kBehind;
  set_ends(run, *granules, Kind::kTaken);
  return run;
}

// Now and then a granule among slabs is left out for good: whoever reads or writes on and on from a block gets there.
void PageHeap::leave_one_out(const Locked&) {
  constexpr uint32_t kSlabsPerGuard = 64;
  if (!guards_wanted() || chance_.below(kSlabsPerGuard) != 0) return;
  Granule* const run = find_clean(1);
  if (run == nullptr || os::add_guard(start_of(run), kGranule, true) != os::GuardKind::kNone) return;
  free_.put(run, 1, FreeState::kClean);
}

}  // namespace annex
