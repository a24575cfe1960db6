// Heaps: see heap.h.
#include "core/heap.h"

#include <algorithm>
#include <atomic>

#include "core/arena.h"
#include "core/commitment.h"
#include "os/message.h"
#include "os/pages.h"

namespace annex {

namespace {

// A full slab is worth a visit again when this many of its blocks are free: fewer, and the slow path runs for next to
// nothing; more, and memory lies idle.
constexpr uint32_t fair_share(uint32_t capacity) { return std::max(capacity / 8, 1u); }

// How much is carved at a time where the memory is resident already. Untouched memory is carved page by page.
constexpr size_t kResidentExtent = 16384;

}  // namespace

Block* Heap::refill(SizeClass c) {
  ++refills;
  Granule* slab = current_[c];
  if (slab != nullptr && slab->free != nullptr) return take(slab);
  Granule* candidate = partial_[c].first;
  const bool carvable = slab != nullptr && slab->carved < slab->capacity;
  if (candidate == nullptr || (candidate->free == nullptr && carvable)) {
    if (carvable) return carve(slab);
    candidate = new_slab(c);
    if (candidate == nullptr) return nullptr;
  } else {
    unlink(candidate);
  }
  if (slab != nullptr) retire(slab);
  candidate->state = SlabState::kCurrent;
  current_[c] = candidate;
  return candidate->free != nullptr ? take(candidate) : carve(candidate);
}

// The slab's freed blocks, all of them; from here on they count as used.
Block* Heap::take(Granule* slab) {
  Block* list = slab->free;
  slab->free = nullptr;
  slab->until = slab->carved;
  return list;
}

// Fresh blocks, linked in order of address.
Block* Heap::carve(Granule* slab) {
  const size_t size = block_size(slab->size_class);
  const size_t extent = slab->fresh ? os::page_size() : kResidentExtent;
  const size_t from = slab->carved * size;
  const size_t to = (from + size + extent - 1) & ~(extent - 1);
  const uint32_t count =
      std::min(std::max(static_cast<uint32_t>((to - from) / size), 1u), uint32_t{slab->capacity} - slab->carved);
  char* const first = start_of(slab) + from;
  char* const last = first + (count - 1) * size;
  for (char* block = first; block < last; block += size) {
    reinterpret_cast<Block*>(block)->next = reinterpret_cast<Block*>(block + size);
  }
  reinterpret_cast<Block*>(last)->next = nullptr;
  // Other threads compare pointers with it (core/block.h).
  __atomic_store_n(&slab->carved, static_cast<uint16_t>(slab->carved + count), __ATOMIC_RELAXED);
  slab->until = static_cast<uint16_t>(slab->until + count);
  note_touched(count * size);
  return reinterpret_cast<Block*>(first);
}

Granule* Heap::new_slab(SizeClass c) {
  bool clean = false;
  Granule* slab = take_run(slab_granules(c), 1, Purpose::kSlab, slab_granules(c) * kGranule, &clean);
  if (slab == nullptr) return nullptr;
  slab->free = nullptr;
  slab->until = slab->floor = 0;
  slab->owner = this;
  slab->remote = 0;
  slab->carved = 0;
  slab->capacity = static_cast<uint16_t>(slab_capacity(c));
  slab->size_class = c;
  slab->fresh = clean;
  slab->magic = slab_magic(c);
  return slab;
}

// A current slab with nothing left to give makes room for another.
void Heap::retire(Granule* slab) {
  if (slab->carved < slab->capacity) {
    push_back(slab);
    return;
  }
  const uint32_t share = fair_share(slab->capacity);
  slab->floor = static_cast<uint16_t>(slab->carved - share);
  slab->until = static_cast<uint16_t>(share);
  // Last, and for others to see: from here on the heap does not touch the slab until one of its blocks comes back.
  std::atomic_ref<SlabState>(slab->state).store(SlabState::kFull, std::memory_order_release);
}

void Heap::put_back(Granule* head, const Chain& chain) {
  // The chain is not walked: its blocks are in another core's caches.
  chain.last->next = head->free;
  head->free = chain.first;
  if (chain.count < head->until) {
    head->until = static_cast<uint16_t>(head->until - chain.count);
  } else {
    settle(head, head->until + head->floor - chain.count);
  }
}

void Heap::settle(Granule* head, uint32_t used) noexcept {
  head->until = static_cast<uint16_t>(used);
  head->floor = 0;
  if (head->state == SlabState::kCurrent) {  // perhaps empty, but about to be allocated from
    // What the heap's list holds counts as used.
    if (used == 0 && free[head->size_class] != nullptr) os::fatal(kFreedTwice, head->free);
    return;
  }
  if (used == 0) {
    if (head->state == SlabState::kPartial) unlink(head);
    let_go(head);
  } else if (head->state == SlabState::kFull) {
    push_front(head);
  }
}

void Heap::let_go(Granule* slab) {
  note_untouched(slab->carved * block_size(slab->size_class));
  slab->magic = 0;
  give_run(slab, slab_granules(slab->size_class), Purpose::kSlab, false);
}

void Heap::flush(Block** lists) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    Granule* slab = current_[c];
    if (slab == nullptr) continue;
    while (Block* block = lists[c]) {
      lists[c] = block->next;
      block->next = slab->free;
      slab->free = block;
      --slab->until;
    }
    current_[c] = nullptr;
    if (slab->until == 0) {
      let_go(slab);
    } else if (slab->free != nullptr) {
      push_front(slab);
    } else {
      retire(slab);
    }
  }
}

void Heap::push_front(Granule* slab) {
  List& list = partial_[slab->size_class];
  slab->state = SlabState::kPartial;
  slab->previous = nullptr;
  slab->next = list.first;
  (list.first != nullptr ? list.first->previous : list.last) = slab;
  list.first = slab;
}

void Heap::push_back(Granule* slab) {
  List& list = partial_[slab->size_class];
  slab->state = SlabState::kPartial;
  slab->next = nullptr;
  slab->previous = list.last;
  (list.last != nullptr ? list.last->next : list.first) = slab;
  list.last = slab;
}

void Heap::unlink(Granule* slab) {
  List& list = partial_[slab->size_class];
  (slab->next != nullptr ? slab->next->previous : list.last) = slab->previous;
  (slab->previous != nullptr ? slab->previous->next : list.first) = slab->next;
}

}  // namespace annex
