// Which small blocks are in use: see live_blocks.h.
#include "harden/live_blocks.h"

#include "os/pages.h"
#include "pages/page_heap.h"

namespace annex::harden {

constinit StateTable tiny_states = {};
constinit StateTable larger_states = {};

namespace {

constexpr size_t kStep = 64 * 1024;  // committed at a time
constexpr size_t kGuard = 64 * 1024;

struct Kept {
  StateTable* table;
  unsigned shift;
  size_t committed[kMaxArenas];  // bytes of an arena's part, from the first
};
constinit Kept kept[] = {{&tiny_states, kTinyShift, {}}, {&larger_states, kLargerShift, {}}};

os::MapResult commit(Kept* states, const Arena& arena, size_t end) {
  const size_t number = arena.number();
  const uintptr_t base = reinterpret_cast<uintptr_t>(arena.start()) >> states->shift;
  uint8_t*& part = states->table->all[number];
  if (part == nullptr) {
    const size_t bytes = round_up(arena.bytes() >> states->shift, kStep) + 2 * kGuard;
    char* const room = os::room_anywhere(bytes, kStep);
    if (room == nullptr) return os::MapResult::kNoMemory;
    part = reinterpret_cast<uint8_t*>(room) + kGuard - base;
    if (number == 0) states->table->first = part;
  }
  size_t& committed = states->committed[number];
  const size_t wanted = round_up(end * kGranule >> states->shift, kStep);
  if (wanted <= committed) return os::MapResult::kMapped;
  const size_t more = wanted - committed;
  const os::MapResult result = os::map_at(part + base + committed, more);
  if (result != os::MapResult::kMapped) return result;
  page_heap.books.committed += more;
  page_heap.books.metadata += more;
  committed = wanted;
  return result;
}

}  // namespace

os::MapResult commit_states(const Arena& arena, size_t end) {
  for (Kept& states : kept) {
    const os::MapResult result = commit(&states, arena, end);
    if (result != os::MapResult::kMapped) return result;
  }
  return os::MapResult::kMapped;
}

void purge_states(const Locked& lock) {
  PageHeap::walk(lock, [](const Granule* run) {
    if (!is_free(run)) return 0;
    const uintptr_t start = reinterpret_cast<uintptr_t>(start_of(run));
    const uintptr_t end = start + run->length * kGranule;
    for (const Kept& states : kept) {
      const uintptr_t part = reinterpret_cast<uintptr_t>(states.table->all[run->arena]);
      const uintptr_t from = round_up(part + (start >> states.shift), os::page_size());
      const uintptr_t to = round_down(part + (end >> states.shift), os::page_size());
      if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
    }
    return 0;
  });
}

}  // namespace annex::harden
