// Arenas: see arena.h.
#include "core/arena.h"

#include <algorithm>
#include <atomic>

#include "core/chance.h"
#include "core/commitment.h"
#include "os/pages.h"

namespace annex {

constinit Primary primary = {kNowhere, nullptr, 0};
constinit os::Lock arena_lock;
[[gnu::section(".bss.arenas")]] constinit Arena arenas[kMaxArenas];  // last of all: layout.ld
constinit uint32_t arena_count = 0;
constinit CommitSideTables* commit_side_tables = nullptr;

namespace {

constexpr size_t kMetadataStep = 64 * 1024;  // committed at a time: that of 32 MiB

// Pieces of 2 MiB before the first granule: the metadata of each is a page. Slabs begin at multiples of 16 pages, as
// does the metadata, and in a TLB of 16 sets the first pages of them all compete for one. So the metadata that is used
// first begins eight pages further on. (cfrac, simulated: the allocator waited 3.3 million cycles for translations, now
// 0.06 million, of 70 million in all.)
constexpr uint32_t kPiecesLeftOut = 8;

constinit Chance chance;  // under the arena lock

// How far into a free run that is long enough the granules lie which are taken from it, by chance: a multiple of their
// number, so that others of that length fit beside them. In order where addresses are scarce: then long runs must stay
// free.
uint32_t offset_in(uint32_t length, uint32_t granules) {
  return addresses_abound() && granules < kGranulesPerHugePage ? chance.below(length / granules) * granules : 0;
}

// Whether a run is free of which this is the head or the last granule. One beside it may be a span that another thread
// frees at this moment, without the lock (harden/guarded_span.h): it isn't free before and after.
bool is_free(const Granule* end) {
  return std::atomic_ref<Kind>(const_cast<Kind&>(end->kind)).load(std::memory_order_relaxed) == Kind::kFree;
}

}  // namespace

bool Arena::reserve(size_t bytes) {
  const bool with_reach = this == &arenas[0] && bytes >= kLeastWithReach;
  if (with_reach && bytes < kReach) bytes += metadata_bytes(kReach);
  metadata_ = metadata_bytes(with_reach ? std::max(bytes, kReach) : bytes);
  base_ = static_cast<char*>(kByChance ? os::reserve_anywhere(bytes, kHugePage) : os::reserve(bytes, kHugePage));
  if (base_ == nullptr) return false;
  // Small pages until we ask for others, also where the system gives huge ones unasked: there the first touch of a
  // small heap would cost 2 MiB.
  os::advise_huge(base_, bytes, false);
  bytes_ = bytes;
  first_ = static_cast<uint32_t>(metadata_ / kGranule);
  if (this == &arenas[0]) {
    primary.base = base_;
    if (with_reach && os::allow_reading(base_, metadata_)) primary.reach = reinterpret_cast<uintptr_t>(base_);
  }
  if (with_reach) first_ += kPiecesLeftOut * kGranulesPerHugePage;
  // Where metadata can be read for all of it, the first blocks may be anywhere in its first half.
  if (this == &arenas[0] && addresses_abound()) {
    first_ += chance.below(static_cast<uint32_t>((bytes - metadata_) / kGranule / 2));
    metadata_committed_ = round_down(first_ * sizeof(Granule), kMetadataStep);
  }
  frontier_ = committed_ = first_;
  commitment.reserved += bytes;
  return true;
}

// Makes memory and metadata usable up to a new frontier.
bool Arena::commit_to(uint32_t frontier) {
  const uint32_t all = static_cast<uint32_t>(bytes_ / kGranule);
  if (frontier > all) return false;
  const size_t metadata = std::min(round_up(frontier * sizeof(Granule), kMetadataStep), metadata_);
  if (metadata > metadata_committed_) {
    if (!os::commit(base_ + metadata_committed_, metadata - metadata_committed_)) return false;
    commitment.metadata += metadata - metadata_committed_;
    commitment.committed += metadata - metadata_committed_;
    __atomic_store_n(&metadata_committed_, metadata, __ATOMIC_RELAXED);
    if (this == &arenas[0]) {
      __atomic_store_n(&primary.bytes, metadata / sizeof(Granule) * kGranule, __ATOMIC_RELAXED);
    }
  }
  if (commit_side_tables != nullptr && !commit_side_tables(*this, frontier)) return false;
  if (frontier > committed_) {
    const size_t step = commit_step(size_t{committed_ - first_} * kGranule) / kGranule;
    uint32_t target = static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(frontier, committed_ + step), all));
    char* start = base_ + size_t{committed_} * kGranule;
    if (!os::commit(start, size_t{target - committed_} * kGranule)) {
      target = frontier;  // perhaps just what is needed can still be had
      if (!os::commit(start, size_t{target - committed_} * kGranule)) return false;
    }
    commitment.committed += size_t{target - committed_} * kGranule;
    committed_ = target;
  }
  return true;
}

Granule* Arena::granule_checked(const void* address) const {
  Granule* granule = granule_at(address);
  const size_t committed = __atomic_load_n(&metadata_committed_, __ATOMIC_RELAXED);
  return reinterpret_cast<char*>(granule + 1) <= base_ + committed ? granule : nullptr;
}

// --- free runs ------------------------------------------------------------------------------------------------------

// Out of the books, whole.
void Arena::take_out(Granule* run) {
  if (run->dirty) {
    dirty_.remove(run);
    age_remove(run);
    commitment.dirty -= size_t{run->length} * kGranule;
  } else {
    clean_.remove(run);
  }
  run->kind = Kind::kNone;
  run[run->length - 1].kind = Kind::kNone;
}

// Takes the first granules of a free run; the rest stays free, as old as it was.
void Arena::take_front(Granule* run, uint32_t granules) {
  const uint32_t rest = run->length - granules;
  if (rest == 0) {
    take_out(run);
    return;
  }
  Granule* remainder = run + granules;
  Granule* last = run + run->length - 1;
  const bool dirty = run->dirty;
  RunBins& bins = dirty ? dirty_ : clean_;
  bins.remove(run);
  remainder->kind = last->kind = Kind::kFree;
  remainder->dirty = last->dirty = dirty;
  remainder->length = last->length = rest;
  remainder->limit = 0;
  bins.insert(remainder);
  if (dirty) {
    age_replace(run, remainder);
    commitment.dirty -= size_t{granules} * kGranule;
  }
  run->kind = Kind::kNone;
  run[granules - 1].kind = Kind::kNone;
}

// Takes the last granules of a free run. The front stays free, so that a span before it can still grow in place.
Granule* Arena::take_back(Granule* run, uint32_t granules) {
  const uint32_t rest = run->length - granules;
  Granule* taken = run + rest;
  if (rest == 0) {
    take_out(run);
    return taken;
  }
  Granule* last = taken - 1;
  const bool dirty = run->dirty;
  RunBins& bins = dirty ? dirty_ : clean_;
  bins.remove(run);
  last->kind = Kind::kFree;
  last->dirty = dirty;
  run->length = last->length = rest;
  last->limit = 0;
  bins.insert(run);
  if (dirty) commitment.dirty -= size_t{granules} * kGranule;
  taken->kind = taken[granules - 1].kind = Kind::kNone;
  return taken;
}

// The free run of that state which ends where this one begins, or begins where it ends; nullptr where there is none.
Granule* Arena::run_before(Granule* head, bool dirty) const {
  const Granule* last = head - 1;
  return last >= first() && is_free(last) && last->dirty == dirty ? head - last->length : nullptr;
}

Granule* Arena::run_after(Granule* head, uint32_t granules, bool dirty) const {
  Granule* after = head + granules;
  return after < frontier() && is_free(after) && after->dirty == dirty ? after : nullptr;
}

// Makes a run free, joined with its free neighbours of the same state; returns the joined run.
Granule* Arena::put(Granule* head, uint32_t granules, bool dirty) {
  if (Granule* before = run_before(head, dirty)) {
    head = before;
    granules += before->length;
    take_out(before);
  }
  if (Granule* after = run_after(head, granules, dirty)) {
    granules += after->length;
    take_out(after);
  }
  Granule* last = head + granules - 1;
  head->kind = last->kind = Kind::kFree;
  head->dirty = last->dirty = dirty;
  head->length = last->length = granules;
  head->limit = last->limit = 0;
  (dirty ? dirty_ : clean_).insert(head);
  return head;
}

// The joined run is as old as its longest part, and has that one's place: what comes and goes at its ends must not keep
// it from ever being due.
void Arena::put_dirty(Granule* head, uint32_t granules, uint64_t now_ms) {
  Granule* const parts[2] = {run_before(head, true), run_after(head, granules, true)};
  const Granule* longest = nullptr;
  for (const Granule* part : parts) {
    if (part != nullptr && part->length > (longest == nullptr ? granules : longest->length)) longest = part;
  }
  Granule* older = longest == nullptr ? commitment.newest : longest->age.older;
  while (older != nullptr && (older == parts[0] || older == parts[1])) older = older->age.older;
  const uint64_t freed_ms = longest == nullptr ? now_ms : longest->age.freed_ms;
  Granule* run = put(head, granules, true);
  age_insert(run, older, freed_ms);
  commitment.dirty += size_t{run->length} * kGranule;
}

void Arena::take_part(Granule* run, uint32_t offset, uint32_t granules) {
  const uint32_t behind = run->length - offset - granules;
  if (offset == 0) {
    take_front(run, granules);
    return;
  }
  const bool dirty = run->dirty;
  const uint64_t freed_ms = dirty ? run->age.freed_ms : 0;
  Granule* part = take_back(run, granules + behind);
  if (behind == 0) return;
  Granule* rest = part + granules;
  Granule* last = rest + behind - 1;
  rest->kind = last->kind = Kind::kFree;
  rest->dirty = last->dirty = dirty;
  rest->length = last->length = behind;
  rest->limit = last->limit = 0;
  (dirty ? dirty_ : clean_).insert(rest);
  rest[-1].kind = Kind::kNone;
  if (!dirty) return;
  age_insert(rest, run, freed_ms);
  commitment.dirty += size_t{behind} * kGranule;
}

// From its end; a run of several 2 MiB so that it starts at a multiple of them, where it can: its pages can then be
// moved by whole tables (gather.h).
Granule* Arena::take_dirty(uint32_t granules) {
  Granule* run = dirty_.find(granules);
  if (run == nullptr) return nullptr;
  const uint32_t at = static_cast<uint32_t>(run - metadata());
  const uint32_t aligned = round_down(at + run->length - granules, kGranulesPerHugePage);
  if (granules < kGranulesPerHugePage || aligned < at) return take_back(run, granules);
  Granule* taken = metadata() + aligned;
  take_part(run, aligned - at, granules);
  return taken;
}

Granule* Arena::take_clean(uint32_t granules) {
  Granule* run = clean_.find(granules);
  if (run == nullptr) return nullptr;
  const uint32_t offset = offset_in(run->length, granules);
  take_part(run, offset, granules);
  return run + offset;
}

bool Arena::can_join(Granule* dirty, uint32_t granules) const {
  const Granule* before = run_before(dirty, false);
  const Granule* after = run_after(dirty, dirty->length, false);
  return dirty->length + (before == nullptr ? 0 : before->length) + (after == nullptr ? 0 : after->length) >= granules;
}

Granule* Arena::take_joined(Granule* dirty, uint32_t granules) {
  Granule* before = run_before(dirty, false);
  Granule* after = run_after(dirty, dirty->length, false);
  const uint32_t missing = granules - dirty->length;
  const uint32_t from_after = after == nullptr ? 0 : std::min(after->length, missing);
  take_out(dirty);
  if (from_after > 0) take_front(after, from_after);
  Granule* head = missing > from_after ? take_back(before, missing - from_after) : dirty;
  head->kind = head[granules - 1].kind = Kind::kNone;
  return head;
}

// Never-used granules, in whole pieces of 2 MiB, so that the pages can be huge and can be moved by whole tables. A run
// starts at a multiple of 2 MiB unless it fits before the next one; what is left of its last piece is clean and free.
Granule* Arena::take_frontier(uint32_t granules, bool huge_pages) {
  uint32_t start = frontier_;
  const uint32_t piece_end = round_up(start, kGranulesPerHugePage);
  if (granules > piece_end - start) start = piece_end;
  uint32_t end = round_up(start + granules, kGranulesPerHugePage);
  if (!commit_to(end)) {
    end = start + granules;
    if (!commit_to(end)) return nullptr;
  }
  if (huge_pages) advise_huge(metadata() + start, end - start);
  start += offset_in(end - start, granules);
  const uint32_t gap = start - frontier_;
  Granule* gap_head = frontier();
  frontier_ = end;
  if (gap > 0) put_clean(gap_head, gap);
  Granule* run = metadata() + start;
  run->kind = run[granules - 1].kind = Kind::kNone;
  if (end > start + granules) put_clean(run + granules, end - start - granules);
  return run;
}

Granule* Arena::take_for_purge(Granule* run, uint32_t granules) {
  Granule* taken = take_back(run, granules);
  set_aside(taken, granules);
  return taken;
}

void Arena::advise_huge(Granule* fresh, uint32_t granules) {
  const size_t bytes = size_t{granules} * kGranule;
  os::advise_huge(start_of(fresh), bytes, true);
  commitment.huge += bytes;
}

bool Arena::take_following(Granule* end, uint32_t granules, bool huge_pages, bool* clean) {
  *clean = true;
  if (end == frontier()) {
    const uint32_t wanted = round_up(frontier_ + granules, kGranulesPerHugePage);
    if (!commit_to(wanted)) return false;
    const uint32_t taken = wanted - frontier_;
    frontier_ = wanted;
    if (huge_pages) advise_huge(end, taken);
    end[granules - 1].kind = Kind::kNone;
    if (taken > granules) put_clean(end + granules, taken - granules);
    return true;
  }
  if (end > frontier() || !is_free(end) || end->length < granules) return false;
  *clean = !end->dirty;
  take_front(end, granules);
  return true;
}

// --- of all arenas ---------------------------------------------------------------------------------------------------

Arena* arena_of(const void* address) {
  const uint32_t count = __atomic_load_n(&arena_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (arenas[i].contains(address)) return &arenas[i];
  }
  return nullptr;
}

Granule* granule_of(const void* address) {
  const Arena* arena = arena_of(address);
  return arena == nullptr ? nullptr : arena->granule_checked(address);
}

char* start_of(const Granule* granule) { return arena_of(granule)->start_of(granule); }

}  // namespace annex
