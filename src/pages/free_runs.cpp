// Free runs: see free_runs.h.
#include "pages/free_runs.h"

#include <algorithm>

namespace annex {

FreeRun* FreeRuns::ending_at(const Arena& arena, Granule* end, FreeState state) {
  Granule* const last = end - 1;
  return end > arena.first() && is_free(last, state) ? static_cast<FreeRun*>(end - last->length) : nullptr;
}

FreeRun* FreeRuns::beginning_at(const Arena& arena, Granule* begin, FreeState state) {
  return begin < arena.frontier() && is_free(begin, state) ? static_cast<FreeRun*>(begin) : nullptr;
}

// Both ends say that the run is free; it is in the bins, and not yet in order of age.
FreeRun* FreeRuns::list(Granule* head, uint32_t granules, FreeState state) {
  Granule* const last = head + granules - 1;
  set_ends(head, granules, Kind::kFree);
  head->state = last->state = state;
  head->limit = last->limit = 0;
  FreeRun* const run = static_cast<FreeRun*>(head);
  bins(state).insert(run);
  if (state == FreeState::kDirty) *dirty_ += size_t{granules} * kGranule;
  return run;
}

Granule* FreeRuns::take(FreeRun* run, uint32_t offset, uint32_t granules) {
  const FreeState state = run->state;
  const uint8_t arena = run->arena;
  const uint32_t behind = run->length - offset - granules;
  Granule* const taken = run + offset;
  bins(state).remove(run);
  if (state == FreeState::kDirty) *dirty_ -= size_t{run->length} * kGranule;
  const uint64_t freed_ms = run->freed_ms;  // of a dirty one, as `older` is
  FreeRun* older = run;
  if (offset > 0) {
    list(run, offset, state);
  } else if (state == FreeState::kDirty) {
    older = run->older;
    remove_by_age(run);
  }
  if (behind > 0) {
    FreeRun* const rest = list(taken + granules, behind, state);
    rest->arena = arena;
    if (state == FreeState::kDirty) insert_by_age(rest, older, freed_ms);
  }
  set_ends(taken, granules, Kind::kTaken);
  taken->arena = arena;
  return taken;
}

bool FreeRuns::can_join(FreeRun* dirty, uint32_t granules) {
  const Arena& arena = arena_of_run(dirty);
  const FreeRun* front = ending_at(arena, dirty, FreeState::kClean);
  const FreeRun* back = beginning_at(arena, dirty + dirty->length, FreeState::kClean);
  return dirty->length + (front == nullptr ? 0 : front->length) + (back == nullptr ? 0 : back->length) >= granules;
}

Granule* FreeRuns::take_joined(FreeRun* dirty, uint32_t granules) {
  const Arena& arena = arena_of_run(dirty);
  FreeRun* const front = ending_at(arena, dirty, FreeState::kClean);
  FreeRun* const back = beginning_at(arena, dirty + dirty->length, FreeState::kClean);
  const uint32_t missing = granules - dirty->length;
  const uint32_t from_back = back == nullptr ? 0 : std::min(back->length, missing);
  const uint32_t from_front = missing - from_back;
  Granule* head = take(dirty);
  if (from_back > 0) take(back, 0, from_back);
  if (from_front > 0) head = take(front, front->length - from_front, from_front);
  set_ends(head, granules, Kind::kTaken);
  return head;
}

// The joined run is as old as its longest part, and has that one's place: what comes and goes at its ends must not keep
// it from ever being due.
FreeRun* FreeRuns::put(Granule* head, uint32_t granules, FreeState state, uint64_t now_ms) {
  const Arena& arena = arena_of_run(head);
  FreeRun* const parts[2] = {ending_at(arena, head, state), beginning_at(arena, head + granules, state)};
  FreeRun* older = newest_;
  uint64_t freed_ms = now_ms;
  if (state == FreeState::kDirty) {
    uint32_t longest = granules;
    for (const FreeRun* part : parts) {
      if (part == nullptr || part->length <= longest) continue;
      longest = part->length;
      older = part->older;
      freed_ms = part->freed_ms;
    }
    while (older != nullptr && (older == parts[0] || older == parts[1])) older = older->older;
  }
  for (FreeRun* part : parts) {
    if (part == nullptr) continue;
    granules += part->length;
    take(part);
  }
  FreeRun* const run = list(parts[0] != nullptr ? parts[0] : head, granules, state);
  if (state == FreeState::kDirty) insert_by_age(run, older, freed_ms);
  return run;
}

Granule* FreeRuns::put_rest(Granule* head, uint32_t taken, uint32_t offset, uint32_t granules, FreeState state,
                            uint64_t now_ms) {
  Granule* const kept = head + offset;
  const uint32_t behind = taken - offset - granules;
  kept->arena = head->arena;
  set_ends(kept, granules, Kind::kTaken);
  if (offset > 0) put(head, offset, state, now_ms);
  if (behind > 0) {
    kept[granules].arena = head->arena;
    put(kept + granules, behind, state, now_ms);
  }
  return kept;
}

void FreeRuns::insert_by_age(FreeRun* run, FreeRun* older, uint64_t freed_ms) {
  run->freed_ms = freed_ms;
  run->older = older;
  run->newer = older != nullptr ? older->newer : oldest_;
  (run->older != nullptr ? run->older->newer : oldest_) = run;
  (run->newer != nullptr ? run->newer->older : newest_) = run;
}

void FreeRuns::remove_by_age(FreeRun* run) {
  (run->older != nullptr ? run->older->newer : oldest_) = run->newer;
  (run->newer != nullptr ? run->newer->older : newest_) = run->older;
}

}  // namespace annex
