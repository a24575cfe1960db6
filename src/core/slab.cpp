// Slabs: see slab.h.
#include "core/slab.h"

#include <bit>

#include "core/chance.h"
#include "core/commitment.h"
#include "core/runs.h"
#include "os/pages.h"

namespace annex {

namespace {

// Whatever a heap reads of a slab without blocks.
void begin(Granule* slab, SizeClass c, uint16_t number, uint64_t chance, bool fresh) {
  slab->key = slab_key(c, static_cast<uint16_t>(chance), number);
  slab->free = nullptr;
  slab->remote = 0;
  slab->fresh = fresh;
  slab->takes = 0;
}

// So many bytes of blocks are made together: as many blocks as are put in random order, or where those are much memory,
// which all is touched for it, four at least.
size_t extent_by_chance(size_t size) {
  const size_t most = std::clamp(std::bit_ceil(4 * size), kResidentExtent, kGranule);
  return std::max(std::min(std::bit_ceil(kShuffled * size), most), os::page_size());
}

}  // namespace

Granule* make_slab(SizeClass c, Heap* owner, uint16_t number, bool first, uint32_t more, Granule** spares) {
  bool clean = false;
  Granule* slab = take_slab_run(c, &clean, first, more, spares);
  if (slab == nullptr) return nullptr;
  slab->owner = owner;
  begin(slab, c, number, slab->key, clean);
  return slab;
}

void make_slab_of(Granule* spare, SizeClass c, Heap* owner, uint16_t number) {
  spare->owner = owner;
  spare->size_class = c;
  begin(spare, c, number, spare->key, true);
}

void end_slab(Granule* slab) {
  slab->countdown = slab->used_after = 0;
  set_carved(slab, 0);
}

void remake_slab(Granule* slab, SizeClass c, uint64_t chance) {
  slab->size_class = c;
  begin(slab, c, owner_in(slab->key), chance, false);
}

void set_carved(Granule* slab, uint32_t blocks) {
  __atomic_store_n(&slab->carved, static_cast<uint16_t>(blocks), __ATOMIC_RELAXED);
  __atomic_store_n(&slab->limit, slab_limit(slab->size_class, slab->key, blocks), __ATOMIC_RELAXED);
}

uint32_t blocks_to_carve(const Granule* slab) {
  const size_t size = block_size(slab->size_class);
  const size_t extent = kByChance ? extent_by_chance(size) : slab->fresh ? os::page_size() : kResidentExtent;
  const size_t from = slab->carved * size;
  const size_t to = (from + size + extent - 1) & ~(extent - 1);
  return std::min(std::max(static_cast<uint32_t>((to - from) / size), 1u),
                  slab_capacity(slab->size_class) - slab->carved);
}

void let_go(Granule* slab) {
  note_untouched(slab->carved * block_size(slab->size_class));
  end_slab(slab);
  give_slab_run(slab);
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
