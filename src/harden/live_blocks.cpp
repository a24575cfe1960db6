// Which small blocks are in use: see live_blocks.h.
#include "harden/live_blocks.h"

#include "os/pages.h"
#include "pages/page_heap.h"

namespace annex::harden {

constinit StateTables state_tables = {};

namespace {

constexpr size_t kStep = 64 * 1024;  // committed at a time: the states of 1 MiB
constexpr size_t kGuard = 64 * 1024;

constinit size_t committed[kMaxArenas];  // bytes of an arena's states, from the first

}  // namespace

os::MapResult commit_states(const Arena& arena, size_t end) {
  const size_t number = arena.number();
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
  page_heap.books.committed += more;
  page_heap.books.metadata += more;
  committed[number] = wanted;
  return result;
}

void purge_states(const Locked& lock) {
  PageHeap::walk(lock, [](const Granule* run) {
    if (!is_free(run)) return 0;
    const uintptr_t start = reinterpret_cast<uintptr_t>(state_tables.all[run->arena]) +
                            reinterpret_cast<uintptr_t>(start_of(run)) / kMinAlignment;
    const uintptr_t from = round_up(start, os::page_size());
    const uintptr_t to = round_down(start + run->length * kGranule / kMinAlignment, os::page_size());
    if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
    return 0;
  });
}

}  // namespace annex::harden
