// Which small blocks are in use: see live_blocks.h.
#include "harden/live_blocks.h"

#include "core/commitment.h"
#include "os/pages.h"

namespace annex::harden {

constinit StateTables state_tables = {};

namespace {

constexpr size_t kStep = 64 * 1024;  // committed at a time: the states of 1 MiB
constexpr size_t kGuard = 64 * 1024;

constinit size_t committed[kMaxArenas];  // bytes of an arena's states, from the first

}  // namespace

os::MapResult commit_states(const Arena& arena, size_t end) {
  const size_t number = static_cast<size_t>(&arena - arenas);
  const uintptr_t base = reinterpret_cast<uintptr_t>(arena.start()) / kMinAlignment;
  if (state_tables.all[number] == nullptr) {
    const size_t bytes = round_up(arena.bytes() / kMinAlignment, kStep) + 2 * kGuard;
    char* const room = os::room_anywhere(bytes, kStep);
    if (room == nullptr) return os::MapResult::kNoMemory;
    state_tables.all[number] = reinterpret_cast<uint8_t*>(room) + kGuard - base;
    if (number == 0) state_tables.first = state_tables.all[0];
  }
  const size_t wanted = round_up(end * kGranule / kMinAlignment, kStep);
  if (wanted <= committed[number]) return os::MapResult::kMapped;
  const size_t more = wanted - committed[number];
  const os::MapResult result = os::map_at(state_tables.all[number] + base + committed[number], more);
  if (result != os::MapResult::kMapped) return result;
  commitment.committed += more;
  commitment.metadata += more;
  committed[number] = wanted;
  return result;
}

void purge_states() {
  os::Guard guard(arena_lock);
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Arena& arena = arenas[i];
    uint32_t granules = 0;
    for (const Granule* run = arena.first(); run < arena.frontier(); run += granules) {
      granules = Arena::length_of(run);
      if (!is_free(run)) continue;
      const uintptr_t start = reinterpret_cast<uintptr_t>(state_tables.all[i]) +
                              reinterpret_cast<uintptr_t>(arena.start_of(run)) / kMinAlignment;
      const uintptr_t from = round_up(start, os::page_size());
      const uintptr_t to = round_down(start + size_t{granules} * kGranule / kMinAlignment, os::page_size());
      if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
    }
  }
}

}  // namespace annex::harden
