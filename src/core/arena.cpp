// Arenas: see arena.h.
#include "core/arena.h"

#include <algorithm>
#include <atomic>

#include "core/chance.h"
#include "core/commitment.h"
#include "os/pages.h"

namespace annex {

constinit Primary primary = {kNowhere, 0, nullptr};
[[gnu::section(".bss.arenas")]] constinit Arena arenas[kMaxArenas];  // last of all: layout.ld
constinit uint32_t arena_count = 0;
constinit CommitSideTables* commit_side_tables = nullptr;

namespace {

constexpr size_t kMetadataStep = 64 * 1024;  // committed at a time: that of 32 MiB

constinit Chance chance;  // under the arena lock

// How far into a free run that is long enough the granules lie which are taken from it, by chance: a multiple of their
// number, so that others of that length fit beside them. In order where addresses are scarce: then long runs must stay
// free.
uint32_t offset_in(uint32_t length, uint32_t granules) {
  return addresses_abound() && granules < kGranulesPerHugePage ? chance.below(length / granules) * granules : 0;
}

}  // namespace

// The first metadata is mapped at once: where another has mapped something, the next room is tried.
bool Arena::begin(size_t bytes) {
  constexpr int kTries = 8;
  const bool first = this == &arenas[0];
  bytes_ = first ? std::min(bytes, kMostOfPrimary) : bytes;
  const size_t below = first ? kMetadataBelow : round_up(bytes_ / kGranule * sizeof(Granule), kHugePage);
  for (int i = 0; i < kTries; ++i) {
    blocked_ = false;
    const size_t room_below = round_up(below, kHugePage);
    char* const room = kByChance ? os::room_anywhere(bytes_, kHugePage) : os::room(room_below + bytes_, kHugePage);
    char* const metadata = kByChance ? os::room_anywhere(below, os::page_size()) : room + room_below - below;
    if (room == nullptr || metadata == nullptr) return false;
    start_ = kByChance ? room : room + room_below;
    metadata_ = reinterpret_cast<Granule*>(metadata);
    if (commit_metadata(1)) return true;
    if (!blocked_) return false;
  }
  return false;
}

bool Arena::succeeded(os::MapResult result) {
  if (result == os::MapResult::kTaken) blocked_ = true;
  return result == os::MapResult::kMapped;
}

bool Arena::map(void* start, size_t bytes) {
  const os::MapResult result = os::map_at(start, bytes);
  if (!succeeded(result)) {
    // Not for a single block that asks for the impossible.
    if (result == os::MapResult::kNoMemory && bytes <= kLargestCommitStep) addresses_are_scarce = true;
    return false;
  }
  commitment.committed += bytes;
  return true;
}

bool Arena::commit_metadata(uint32_t frontier) {
  const size_t all = bytes_ / kGranule * sizeof(Granule);
  const size_t wanted = std::min(round_up(frontier * sizeof(Granule), kMetadataStep), round_up(all, os::page_size()));
  if (wanted <= metadata_committed_) return true;
  const size_t more = wanted - metadata_committed_;
  if (!map(reinterpret_cast<char*>(metadata_) + metadata_committed_, more)) return false;
  commitment.metadata += more;
  if (this == &arenas[0]) {
    if (metadata_committed_ == 0) {
      primary.start = reinterpret_cast<uintptr_t>(start_);
      primary.metadata = metadata_;
    }
    __atomic_store_n(&primary.granules, wanted / sizeof(Granule), __ATOMIC_RELEASE);
  }
  __atomic_store_n(&metadata_committed_, wanted, __ATOMIC_RELAXED);
  return true;
}

// Makes memory and metadata usable up to a new frontier.
bool Arena::commit_to(uint32_t frontier) {
  const uint32_t all = static_cast<uint32_t>(bytes_ / kGranule);
  if (frontier > all || blocked_ || !commit_metadata(frontier)) return false;
  if (commit_side_tables != nullptr && !succeeded(commit_side_tables(*this, frontier))) return false;
  if (frontier <= committed_) return true;
  const size_t step = commit_step(size_t{committed_} * kGranule) / kGranule;
  uint32_t target = static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(frontier, committed_ + step), all));
  char* const start = start_ + size_t{committed_} * kGranule;
  if (!map(start, size_t{target - committed_} * kGranule)) {
    target = frontier;  // perhaps just what is needed can still be had
    blocked_ = false;
    if (!map(start, size_t{target - committed_} * kGranule)) return false;
  }
  committed_ = target;
  return true;
}

Granule* Arena::granule_checked(const void* address) const {
  Granule* granule = granule_at(address);
  const size_t committed = __atomic_load_n(&metadata_committed_, __ATOMIC_RELAXED);
  return reinterpret_cast<char*>(granule + 1) <= reinterpret_cast<char*>(metadata_) + committed ? granule : nullptr;
}

// --- free runs ------------------------------------------------------------------------------------------------------

// Out of the books, whole.
void Arena::take_out(Granule* run) {
  bins(run->state_of_free).remove(run);
  if (is_dirty(run)) {
    age_remove(run);
    commitment.dirty -= size_t{run->length} * kGranule;
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
  const FreeState state = run->state_of_free;
  bins(state).remove(run);
  remainder->kind = last->kind = Kind::kFree;
  remainder->state_of_free = last->state_of_free = state;
  remainder->length = last->length = rest;
  remainder->limit = 0;
  bins(state).insert(remainder);
  if (state == FreeState::kDirty) {
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
  const FreeState state = run->state_of_free;
  bins(state).remove(run);
  last->kind = Kind::kFree;
  last->state_of_free = state;
  run->length = last->length = rest;
  last->limit = 0;
  bins(state).insert(run);
  if (state == FreeState::kDirty) commitment.dirty -= size_t{granules} * kGranule;
  taken->kind = taken[granules - 1].kind = Kind::kNone;
  return taken;
}

// The free run of that state which ends where this one begins, or begins where it ends; nullptr where there is none.
Granule* Arena::run_before(Granule* head, FreeState state) const {
  const Granule* last = head - 1;
  return head > first() && is_free(last) && last->state_of_free == state ? head - last->length : nullptr;
}

Granule* Arena::run_after(Granule* head, uint32_t granules, FreeState state) const {
  Granule* after = head + granules;
  return after < frontier() && is_free(after) && after->state_of_free == state ? after : nullptr;
}

Granule* Arena::run_ending_at_frontier() const { return run_before(frontier(), FreeState::kClean); }

// Makes a run free, joined with its free neighbours of the same state; returns the joined run.
Granule* Arena::put(Granule* head, uint32_t granules, FreeState state) {
  if (Granule* before = run_before(head, state)) {
    head = before;
    granules += before->length;
    take_out(before);
  }
  if (Granule* after = run_after(head, granules, state)) {
    granules += after->length;
    take_out(after);
  }
  Granule* last = head + granules - 1;
  head->kind = last->kind = Kind::kFree;
  head->state_of_free = last->state_of_free = state;
  head->length = last->length = granules;
  head->limit = last->limit = 0;
  bins(state).insert(head);
  return head;
}

// The joined run is as old as its longest part, and has that one's place: what comes and goes at its ends must not keep
// it from ever being due.
void Arena::put_dirty(Granule* head, uint32_t granules, uint64_t now_ms) {
  Granule* const parts[2] = {run_before(head, FreeState::kDirty), run_after(head, granules, FreeState::kDirty)};
  const Granule* longest = nullptr;
  for (const Granule* part : parts) {
    if (part != nullptr && part->length > (longest == nullptr ? granules : longest->length)) longest = part;
  }
  Granule* older = longest == nullptr ? commitment.newest : longest->age.older;
  while (older != nullptr && (older == parts[0] || older == parts[1])) older = older->age.older;
  const uint64_t freed_ms = longest == nullptr ? now_ms : longest->age.freed_ms;
  Granule* run = put(head, granules, FreeState::kDirty);
  age_insert(run, older, freed_ms);
  commitment.dirty += size_t{run->length} * kGranule;
}

void Arena::take_part(Granule* run, uint32_t offset, uint32_t granules) {
  const uint32_t behind = run->length - offset - granules;
  if (offset == 0) {
    take_front(run, granules);
    return;
  }
  const FreeState state = run->state_of_free;
  const bool dirty = state == FreeState::kDirty;
  const uint64_t freed_ms = dirty ? run->age.freed_ms : 0;
  Granule* part = take_back(run, granules + behind);
  if (behind == 0) return;
  Granule* rest = part + granules;
  Granule* last = rest + behind - 1;
  rest->kind = last->kind = Kind::kFree;
  rest->state_of_free = last->state_of_free = state;
  rest->length = last->length = behind;
  rest->limit = last->limit = 0;
  bins(state).insert(rest);
  rest[-1].kind = Kind::kNone;
  if (!dirty) return;
  age_insert(rest, run, freed_ms);
  commitment.dirty += size_t{behind} * kGranule;
}

// From its end; a run of several 2 MiB, unless addresses are scarce, so that it starts at a multiple of them, where it
// can: its pages can then be moved by whole tables (gather.h).
Granule* Arena::take_dirty(uint32_t granules) {
  Granule* run = bins(FreeState::kDirty).find(granules);
  if (run == nullptr) return nullptr;
  const uint32_t at = static_cast<uint32_t>(run - metadata());
  const uint32_t aligned = round_down(at + run->length - granules, kGranulesPerHugePage);
  if (granules < kGranulesPerHugePage || aligned < at || addresses_are_scarce) return take_back(run, granules);
  Granule* taken = metadata() + aligned;
  take_part(run, aligned - at, granules);
  return taken;
}

Granule* Arena::take_clean(uint32_t granules) {
  Granule* run = bins(FreeState::kClean).find(granules);
  if (run == nullptr) return nullptr;
  const uint32_t offset = offset_in(run->length, granules);
  take_part(run, offset, granules);
  return run + offset;
}

bool Arena::can_join(Granule* dirty, uint32_t granules) const {
  const Granule* before = run_before(dirty, FreeState::kClean);
  const Granule* after = run_after(dirty, dirty->length, FreeState::kClean);
  return dirty->length + (before == nullptr ? 0 : before->length) + (after == nullptr ? 0 : after->length) >= granules;
}

Granule* Arena::take_joined(Granule* dirty, uint32_t granules) {
  Granule* before = run_before(dirty, FreeState::kClean);
  Granule* after = run_after(dirty, dirty->length, FreeState::kClean);
  const uint32_t missing = granules - dirty->length;
  const uint32_t from_after = after == nullptr ? 0 : std::min(after->length, missing);
  take_out(dirty);
  if (from_after > 0) take_front(after, from_after);
  Granule* head = missing > from_after ? take_back(before, missing - from_after) : dirty;
  head->kind = head[granules - 1].kind = Kind::kNone;
  return head;
}

// Never-used granules, with the clean ones before them, in whole pieces of 2 MiB, so that the pages can be huge; a run
// of that length or more starts at a multiple of it, so that its pages can be moved by whole tables. What is left
// before it and of its last piece is clean and free. None of that where addresses are scarce.
Granule* Arena::take_frontier(uint32_t granules, bool huge_pages) {
  Granule* const before = run_ending_at_frontier();
  const uint32_t from = frontier_ - (before == nullptr ? 0 : before->length);
  const bool aligned = granules >= kGranulesPerHugePage && !addresses_are_scarce;
  uint32_t start = aligned ? round_up(from, kGranulesPerHugePage) : from;
  uint32_t end = addresses_are_scarce ? start + granules : round_up(start + granules, kGranulesPerHugePage);
  if (!commit_to(end)) {
    start = from;
    end = from + granules;
    if (!commit_to(end)) return nullptr;
  }
  if (before != nullptr) take_out(before);
  if (huge_pages) advise_huge(frontier(), end - frontier_);
  start += offset_in(end - start, granules);
  frontier_ = end;
  if (start > from) put_clean(metadata_ + from, start - from);
  Granule* run = metadata_ + start;
  run->kind = run[granules - 1].kind = Kind::kNone;
  if (end > start + granules) put_clean(run + granules, end - start - granules);
  return run;
}

Granule* Arena::take_for_purge(Granule* run, uint32_t granules) {
  Granule* taken = take_back(run, granules);
  set_aside(taken, granules);
  return taken;
}

bool Arena::take_following(Granule* end, uint32_t granules, bool huge_pages, bool* clean) {
  *clean = true;
  if (end == frontier()) {
    const uint32_t least = frontier_ + granules;
    const uint32_t wanted = addresses_are_scarce ? least : round_up(least, kGranulesPerHugePage);
    if (!commit_to(wanted)) return false;
    const uint32_t taken = wanted - frontier_;
    frontier_ = wanted;
    if (huge_pages) advise_huge(end, taken);
    end[granules - 1].kind = Kind::kNone;
    if (taken > granules) put_clean(end + granules, taken - granules);
    return true;
  }
  if (end > frontier() || !is_free(end) || end->length < granules) return false;
  if (end->state_of_free == FreeState::kUnmapped) return false;
  *clean = !is_dirty(end);
  take_front(end, granules);
  return true;
}

// --- giving back -----------------------------------------------------------------------------------------------------

// Only the head and the last granule of a free run are read.
void Arena::purge_metadata(Granule* run) {
  const uintptr_t from = round_up(reinterpret_cast<uintptr_t>(run + 1), os::page_size());
  const uintptr_t to = round_down(reinterpret_cast<uintptr_t>(run + run->length - 1), os::page_size());
  if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
}

// A run's owner may change it at this moment: a slab's class, for one with slabs of the same length; a span that is
// freed.
[[gnu::no_sanitize_thread]] uint32_t Arena::length_of(const Granule* run) {
  return run->kind == Kind::kSlab ? slab_granules(run->size_class) : run->length;
}

void Arena::trim() {
  constexpr uint32_t kUnmappedFrom = (size_t{1} << 20) / kGranule;
  uint32_t length = 0;
  for (Granule* run = first(); run < frontier(); run += length) {
    length = length_of(run);
    if (!is_free(run) || is_dirty(run)) continue;
    if (run->state_of_free == FreeState::kClean && length >= kUnmappedFrom) {
      run = unmap_clean(run);
      length = run->length;
    }
    purge_metadata(run);
  }
  while (frontier_ > 0 && is_free(frontier() - 1) && !is_dirty(frontier() - 1)) {
    Granule* const last = frontier() - frontier()[-1].length;
    const bool unmapped = last->state_of_free == FreeState::kUnmapped;
    if (unmapped && !uncommit(frontier_)) return;
    take_out(last);
    frontier_ = static_cast<uint32_t>(last - metadata_);
    if (unmapped) committed_ = frontier_;
  }
  if (committed_ - frontier_ > kGranulesPerHugePage) uncommit(frontier_);
}

// --- giving addresses back -------------------------------------------------------------------------------------------

bool Arena::give_addresses(char* start, size_t bytes) {
  if (!os::unmap_at(start, bytes)) return false;
  commitment.committed -= bytes;
  if (huge_noted_ > 0) forget_huge(start, bytes);
  return true;
}

// From that granule on, which is not before the frontier.
bool Arena::uncommit(uint32_t from) {
  if (from == committed_) return true;
  if (!give_addresses(start_ + size_t{from} * kGranule, size_t{committed_ - from} * kGranule)) return false;
  committed_ = from;
  return true;
}

Granule* Arena::put_unmapped(Granule* run, uint32_t granules, size_t bytes) {
  commitment.committed -= bytes;
  if (huge_noted_ > 0) forget_huge(start_of(run), size_t{granules} * kGranule);
  return put(run, granules, FreeState::kUnmapped);
}

size_t Arena::unmap_clean(size_t bytes) {
  size_t total = 0;
  while (total < bytes) {
    Granule* const run = bins(FreeState::kClean).longest();
    if (run == nullptr) break;
    const size_t mapped = size_t{run->length} * kGranule;
    if (unmap_clean(run)->state_of_free == FreeState::kClean) break;
    total += mapped;
  }
  return total;
}

// The free run that it is part of then.
Granule* Arena::unmap_clean(Granule* run) {
  const uint32_t granules = run->length;
  const size_t bytes = size_t{granules} * kGranule;
  take_out(run);
  return os::unmap_at(start_of(run), bytes) ? put_unmapped(run, granules, bytes) : put_clean(run, granules);
}

Granule* Arena::take_unmapped(uint32_t granules) {
  Granule* const run = bins(FreeState::kUnmapped).find(granules);
  if (run == nullptr) return nullptr;
  take_front(run, granules);
  if (map(start_of(run), size_t{granules} * kGranule)) return run;
  put(run, granules, FreeState::kUnmapped);
  return nullptr;
}

bool Arena::unmap_tail(Granule* span) {
  if (!give_addresses(start_of(span) + span->span.bytes, tail_bytes(span))) return false;
  span->tail_unmapped = true;
  return true;
}

bool Arena::map_tail(Granule* span) {
  if (!map(start_of(span) + span->span.bytes, tail_bytes(span))) return false;
  span->tail_unmapped = false;
  return true;
}

// --- beside the arenas -----------------------------------------------------------------------------------------------

void* map_metadata(size_t bytes) {
  bytes = round_up(bytes, os::page_size());
  void* const fresh = os::map(bytes);
  if (fresh != nullptr) commitment.beside.fetch_add(bytes, std::memory_order_relaxed);
  return fresh;
}

// --- of all arenas ---------------------------------------------------------------------------------------------------

namespace {

template <class T>
Arena* arena_with(const T* thing) {
  const uint32_t count = __atomic_load_n(&arena_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (arenas[i].contains(thing)) return &arenas[i];
  }
  return nullptr;
}

}  // namespace

Arena* arena_of(const void* address) { return arena_with(address); }
Arena* arena_of(const Granule* granule) { return arena_with(granule); }

Granule* granule_of(const void* address) {
  const Arena* arena = arena_of(address);
  return arena == nullptr ? nullptr : arena->granule_checked(address);
}

char* start_of(const Granule* granule) { return arena_of(granule)->start_of(granule); }

}  // namespace annex
