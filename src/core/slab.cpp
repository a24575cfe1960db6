// Slabs: see slab.h.
#include "core/slab.h"

#include "core/commitment.h"
#include "core/runs.h"
#include "os/pages.h"

namespace annex {

namespace {

// Whatever a heap reads of a slab without blocks.
void begin(Granule* slab, SizeClass c, Heap* owner, bool fresh) {
  slab->free = nullptr;
  slab->owner = owner;
  slab->remote = 0;
  slab->carved = 0;
  slab->fresh = fresh;
  slab->magic = slab_magic(c);
}

}  // namespace

Granule* make_slab(SizeClass c, Heap* owner) {
  bool clean = false;
  Granule* slab = take_slab_run(c, &clean);
  if (slab != nullptr) begin(slab, c, owner, clean);
  return slab;
}

void end_slab(Granule* slab) {
  note_untouched(slab->carved * block_size(slab->size_class));
  slab->magic = 0;
  slab->until = slab->floor = 0;
  // Other threads compare pointers with it (core/block.h).
  __atomic_store_n(&slab->carved, uint16_t{0}, __ATOMIC_RELAXED);
}

void remake_slab(Granule* slab, SizeClass c) {
  slab->size_class = c;
  begin(slab, c, slab->owner, false);
}

uint32_t blocks_to_carve(const Granule* slab) {
  const size_t size = block_size(slab->size_class);
  const size_t extent = slab->fresh ? os::page_size() : kResidentExtent;
  const size_t from = slab->carved * size;
  const size_t to = (from + size + extent - 1) & ~(extent - 1);
  return std::min(std::max(static_cast<uint32_t>((to - from) / size), 1u),
                  slab_capacity(slab->size_class) - slab->carved);
}

void give_slab(Granule* slab) { give_run(slab, slab_granules(slab->size_class), Purpose::kSlab, false); }

void let_go(Granule* slab) {
  end_slab(slab);
  give_slab(slab);
}

void SlabList::push_front(Granule* slab) {
  slab->state = SlabState::kPartial;
  slab->previous = nullptr;
  slab->next = first_;
  (first_ != nullptr ? first_->previous : last_) = slab;
  first_ = slab;
}

void SlabList::push_back(Granule* slab) {
  slab->state = SlabState::kPartial;
  slab->next = nullptr;
  slab->previous = last_;
  (last_ != nullptr ? last_->next : first_) = slab;
  last_ = slab;
}

void SlabList::remove(Granule* slab) {
  (slab->next != nullptr ? slab->next->previous : last_) = slab->previous;
  (slab->previous != nullptr ? slab->previous->next : first_) = slab->next;
}

}  // namespace annex
