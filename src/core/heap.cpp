// Heaps: see heap.h.
#include "core/heap.h"

#include <algorithm>
#include <atomic>

#include "core/arena.h"
#include "core/commitment.h"
#include "core/runs.h"
#include "os/mallacc_markers.h"
#include "os/message.h"
#include "os/random.h"

namespace annex {

Block* Heap::refill(SizeClass c) {
  ++refills;
  Granule* slab = current_[c];
  if (slab != nullptr && slab->free != nullptr) return take(slab);
  Granule* candidate = partial_[c].first();
  const bool carvable = slab != nullptr && slab->carved < slab_capacity(slab->size_class);
  if (candidate == nullptr || (candidate->free == nullptr && carvable)) {
    if (carvable) return carve(slab);
    candidate = new_slab(c);
    if (candidate == nullptr) return nullptr;
  } else {
    partial_[c].remove(candidate);
  }
  if (slab != nullptr) retire(slab);
  candidate->state = SlabState::kCurrent;
  current_[c] = candidate;
  return candidate->free != nullptr ? take(candidate) : carve(candidate);
}

// How many clean runs a heap of so many granules takes at a time beside the one that it needs: a share of what it has,
// as it is likely to grow by as much, and few enough not to spread the heaps' memory over too many huge pages.
constexpr uint32_t spares_wanted(uint32_t granules) { return std::min(granules / 2 + 1, 8u); }

// nullptr where memory is exhausted.
Granule* Heap::new_slab(SizeClass c) {
  if (Granule* slab = cache_.take(slab_granules(c))) {
    remake_slab(slab, c, os::mixed(os::mixed(slab->key) + ++remade_));
    return slab;
  }
  if (spares_ != nullptr && slab_granules(c) == 1) {
    Granule* slab = spares_;
    spares_ = slab->next;
    make_slab_of(slab, c, this, number);
    ++granules_;
    return slab;
  }
  Granule* slab = make_slab(c, this, number, spares_ == nullptr ? spares_wanted(granules_) : 0, &spares_);
  if (slab != nullptr) granules_ += slab_granules(c);
  return slab;
}

// None of the slab's blocks is in use, and it is in no list.
void Heap::drop(Granule* slab) {
  const uint32_t granules = slab_granules(slab->size_class);
  touched_.subtract(slab->carved * block_size(slab->size_class));
  end_slab(slab);
  if (cache_.put(slab, granules, granules_ - taken_away_.load(std::memory_order_relaxed))) return;
  granules_ -= granules;
  give_slab_run(slab);
}

// The slab's freed blocks, all of them; from here on they count as used.
Block* Heap::take(Granule* slab) {
  Block* list = slab->free;
  slab->free = nullptr;
  set_used(slab, slab->carved);
  return list;
}

// Fresh blocks, linked in order of address, and marked as free.
Block* Heap::carve(Granule* slab) {
  const size_t size = block_size(slab->size_class);
  const uint32_t count = blocks_to_carve(slab);
  char* const first = start_of(slab) + slab->carved * size;
  char* const last = first + (count - 1) * size;
  for (char* block = first; block <= last; block += size) {
    reinterpret_cast<Block*>(block)->next = block < last ? reinterpret_cast<Block*>(block + size) : nullptr;
    mark_free(slab->key, block);
  }
  set_carved(slab, slab->carved + count);
  set_used(slab, used_of(slab) + count);
  touched_.add(count * size);
  return reinterpret_cast<Block*>(first);
}

// A current slab with nothing left to give makes room for another.
void Heap::retire(Granule* slab) {
  const uint32_t capacity = slab_capacity(slab->size_class);
  if (slab->carved < capacity) {
    partial_[slab->size_class].push_back(slab);
    return;
  }
  const uint32_t share = fair_share(capacity);
  slab->used_after = static_cast<uint16_t>(slab->carved - share);
  slab->countdown = static_cast<uint16_t>(share);
  // Last, and for others to see: from here on the heap does not touch the slab until one of its blocks comes back.
  std::atomic_ref<SlabState>(slab->state).store(SlabState::kFull, std::memory_order_release);
}

void Heap::put_back(Granule* head, const Chain& chain) {
  // The chain is not walked: its blocks are in another core's caches.
  chain.last->next = head->free;
  head->free = chain.first;
  if (chain.count < head->countdown) {
    head->countdown = static_cast<uint16_t>(head->countdown - chain.count);
  } else {
    settle(head, used_of(head) - chain.count);
  }
}

void Heap::settle(Granule* head, uint32_t used) noexcept {
  // More blocks have come back than were out: less than none is in use.
  if (used > head->carved) os::fatal(kFreedTwice, head->free);
  set_used(head, used);
  if (head->state == SlabState::kCurrent) {  // perhaps empty, but about to be allocated from
    // What the heap's list holds counts as used.
    if (used == 0 && lists[head->size_class] != nullptr) os::fatal(kFreedTwice, head->free);
    return;
  }
  if (used == 0) {
    if (head->state == SlabState::kPartial) partial_[head->size_class].remove(head);
    drop(head);
  } else if (head->state == SlabState::kFull) {
    partial_[head->size_class].push_front(head);
  }
}

void Heap::flush() {
  for (SizeClass c = 0; c < kClasses; ++c) {
    Granule* slab = current_[c];
    if (slab == nullptr) continue;
    uint32_t used = used_of(slab);
    MALLACC_DROP(uint32_t{c});
    while (Block* block = lists[c]) {
      lists[c] = block->next;
      block->next = slab->free;
      slab->free = block;
      --used;
    }
    set_used(slab, used);
    current_[c] = nullptr;
    if (used == 0) {
      drop(slab);
    } else if (slab->free != nullptr) {
      partial_[c].push_front(slab);
    } else {
      retire(slab);
    }
  }
  cache_.flush([this](Granule* run) {
    granules_ -= slab_granules(run->size_class);
    give_slab_run(run);
  });
  give_spares(spares_);
  spares_ = nullptr;
  touched_.tell();
}

}  // namespace annex
