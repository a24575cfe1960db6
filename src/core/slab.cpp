// Slabs: see slab.h.
#include "core/slab.h"

#include "core/arena.h"
#include "core/commitment.h"
#include "os/pages.h"

namespace annex {

Granule* make_slab(SizeClass c, Heap* owner) {
  bool clean = false;
  Granule* slab = take_slab_run(c, &clean);
  if (slab == nullptr) return nullptr;
  slab->free = nullptr;
  slab->owner = owner;
  slab->remote = 0;
  slab->carved = 0;
  slab->fresh = clean;
  slab->magic = slab_magic(c);
  return slab;
}

uint32_t blocks_to_carve(const Granule* slab) {
  const size_t size = block_size(slab->size_class);
  const size_t extent = slab->fresh ? os::page_size() : kResidentExtent;
  const size_t from = slab->carved * size;
  const size_t to = (from + size + extent - 1) & ~(extent - 1);
  return std::min(std::max(static_cast<uint32_t>((to - from) / size), 1u),
                  slab_capacity(slab->size_class) - slab->carved);
}

void let_go(Granule* slab) {
  note_untouched(slab->carved * block_size(slab->size_class));
  slab->magic = 0;
  give_run(slab, slab_granules(slab->size_class), Purpose::kSlab, false);
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
