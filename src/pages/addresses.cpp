// Addresses that go back to the system, and are mapped again: see page_heap.h.
#include <algorithm>

#include "os/pages.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

// Each span without its tail is a mapping of its own, of which a process may have 65,530.
constexpr uint32_t kMostTails = 16384;

// What lies behind a span's usable size in its last granules.
size_t tail_bytes(const Span* span) { return size_t{span->length} * kGranule - span->bytes; }

}  // namespace

void* PageHeap::map_metadata(size_t bytes) {
  bytes = round_up(bytes, os::page_size());
  void* const fresh = os::map(bytes);
  if (fresh != nullptr) books.beside.fetch_add(bytes, std::memory_order_relaxed);
  return fresh;
}

// A span's owner may free it at this moment.
[[gnu::no_sanitize_thread]] uint32_t PageHeap::length_of(const Granule* head) { return head->length; }

FreeRun* PageHeap::put_unmapped(Granule* run, uint32_t granules, size_t bytes) {
  arena_of_run(run).note_unmapped(start_of(run), bytes, &books);
  return free_.put(run, granules, FreeState::kUnmapped);
}

// A clean run is unmapped; the free run that it is part of then.
FreeRun* PageHeap::unmap_clean(FreeRun* run) {
  const uint32_t granules = run->length;
  const size_t bytes = size_t{granules} * kGranule;
  Granule* const taken = free_.take(run);
  return os::unmap_at(start_of(taken), bytes) ? put_unmapped(taken, granules, bytes)
                                              : free_.put(taken, granules, FreeState::kClean);
}

// Clean runs, the longest first, until so many bytes have been. The bytes.
size_t PageHeap::unmap_clean(size_t bytes) {
  size_t total = 0;
  while (total < bytes) {
    FreeRun* const run = free_.longest(FreeState::kClean);
    if (run == nullptr) break;
    const size_t mapped = size_t{run->length} * kGranule;
    if (unmap_clean(run)->state == FreeState::kClean) break;
    total += mapped;
  }
  return total;
}

bool PageHeap::unmap_tail(Span* span) {
  if (!arena_of_run(span).unmap(start_of(span) + span->bytes, tail_bytes(span), &books)) return false;
  span->tail_unmapped = true;
  ++tails_unmapped_;
  return true;
}

// The addresses behind what spans can use are given back, until so many bytes have been. (The hardened build keeps its
// canaries there.)
size_t PageHeap::unmap_tails(const Locked& lock, size_t bytes) {
  size_t total = 0;
  if (kByChance) return total;
  walk(lock, [&](Granule* head) {
    if (total >= bytes || tails_unmapped_ == kMostTails) return 1;
    if (head->kind != Kind::kSpan) return 0;
    Span* const span = static_cast<Span*>(head);
    if (!span->tail_unmapped && tail_bytes(span) > 0 && unmap_tail(span)) total += tail_bytes(span);
    return 0;
  });
  return total;
}

// A span that lacks its tail gets it back; false where that is refused.
bool PageHeap::map_tail(Span* span) {
  if (!arena_of_run(span).map(start_of(span) + span->bytes, tail_bytes(span), &books)) return false;
  span->tail_unmapped = false;
  --tails_unmapped_;
  return true;
}

// There is no memory to make the span whole again: then it is no longer mapped at all.
void PageHeap::give_without_tail(Span* span) {
  const uint32_t granules = span->length;
  const size_t bytes = span->bytes;
  --tails_unmapped_;
  Granule* const run = end_use(span, granules);
  if (os::unmap_at(start_of(run), bytes)) put_unmapped(run, granules, bytes);  // else it stays out of use
}

// Memory was refused for so many bytes: gives as many addresses back that nobody uses, and some more so
// that this is not done for each run. False where that changes nothing.
bool PageHeap::make_room(const Locked& lock, size_t bytes) {
  constexpr size_t kMore = 2 * kHugePage;
  if (bytes > books.committed) return false;
  size_t total = unmap_clean(bytes + kMore);
  if (total < bytes + kMore) total += unmap_tails(lock, bytes + kMore - total);
  return total > 0;
}

// The memory that holds the records inside of a free run: only those of its ends are read.
void PageHeap::purge_records(FreeRun* run) {
  const uintptr_t from = round_up(reinterpret_cast<uintptr_t>(run + 1), os::page_size());
  const uintptr_t to = round_down(reinterpret_cast<uintptr_t>(run + run->length - 1), os::page_size());
  if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
}

// Gives back what nobody uses: the records inside of long free runs, and the addresses of long clean runs and at the
// end.
void PageHeap::trim(Arena& arena) {
  uint32_t length = 0;
  for (Granule* head = arena.first(); head < arena.frontier(); head += length) {
    length = length_of(head);
    if (!is_free(head) || head->state == FreeState::kDirty) continue;
    FreeRun* run = static_cast<FreeRun*>(head);
    if (run->state == FreeState::kClean && length * kGranule >= commitment::kUnmappedIfScarce) {
      run = unmap_clean(run);
      length = run->length;
      head = run;
    }
    purge_records(run);
  }
  for (;;) {
    FreeRun* run = FreeRuns::ending_at(arena, arena.frontier(), FreeState::kUnmapped);
    const bool unmapped = run != nullptr;
    if (run == nullptr) run = FreeRuns::ending_at(arena, arena.frontier(), FreeState::kClean);
    if (run == nullptr) break;
    if (!arena.retreat(static_cast<uint32_t>(arena.index_of(run)), unmapped, &books)) return;
    free_.take(run);
  }
  if (arena.committed_beyond_frontier() > kGranulesPerHugePage) arena.uncommit_rest(&books);
}

}  // namespace annex
