// Which small blocks are in use: see live_blocks.h.
#include "harden/live_blocks.h"

#include "os/pages.h"

namespace annex::harden {

constinit StateTables state_tables = {};

namespace {

constexpr size_t kStep = 64 * 1024;  // committed at a time: that of 1 MiB
constexpr size_t kGuard = 64 * 1024;

constinit size_t committed[kMaxArenas];  // of an arena's bytes, from its start

}  // namespace

bool commit_states(const Arena& arena, size_t end) {
  const size_t number = static_cast<size_t>(&arena - arenas);
  const uintptr_t base = reinterpret_cast<uintptr_t>(arena.base()) / kMinAlignment;
  if (state_tables.all[number] == nullptr) {
    const size_t bytes = round_up(arena.bytes() / kMinAlignment, kStep) + 2 * kGuard;
    char* table = static_cast<char*>(os::reserve_anywhere(bytes, kStep));
    if (table == nullptr) return false;
    os::advise_huge(table, bytes, false);
    state_tables.all[number] = reinterpret_cast<uint8_t*>(table) + kGuard - base;
    if (number == 0) state_tables.first = state_tables.all[0];
    const size_t before = static_cast<size_t>(arena.first() - arena.metadata()) * kGranule;
    committed[number] = round_down(before / kMinAlignment, kStep);
  }
  const size_t wanted = round_up(end * kGranule / kMinAlignment, kStep);
  if (wanted <= committed[number]) return true;
  uint8_t* const from = state_tables.all[number] + base + committed[number];
  if (!os::commit(from, wanted - committed[number])) return false;
  committed[number] = wanted;
  return true;
}

namespace {

struct Run {
  uint32_t granules;
  bool free;
};
// Of a run whose owner may change it at this moment: a slab's class, for one with slabs of the same length; a span that
// is freed.
[[gnu::no_sanitize_thread]] Run look_at(const Granule* head) {
  return {head->kind == Kind::kSlab ? slab_granules(head->size_class) : head->length, head->kind == Kind::kFree};
}

}  // namespace

void purge_states() {
  os::Guard guard(arena_lock);
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Arena& arena = arenas[i];
    uint32_t granules = 0;
    for (const Granule* run = arena.first(); run < arena.frontier(); run += granules) {
      const Run found = look_at(run);
      granules = found.granules;
      if (!found.free) continue;
      const uintptr_t start = reinterpret_cast<uintptr_t>(state_tables.all[i]) +
                              reinterpret_cast<uintptr_t>(arena.start_of(run)) / kMinAlignment;
      const uintptr_t from = round_up(start, os::page_size());
      const uintptr_t to = round_down(start + size_t{granules} * kGranule / kMinAlignment, os::page_size());
      if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
    }
  }
}

}  // namespace annex::harden
