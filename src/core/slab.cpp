// Slabs: see slab.h.
#include "core/slab.h"

#include <atomic>
#include <bit>

#include "core/sample_points.h"
#include "os/pages.h"
#include "os/random.h"
#include "pages/chance.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

// Of slabs' keys, what is by chance: begins anywhere, and then another one for each slab.
uint64_t key_chance() {
  static constinit std::atomic<uint64_t> count{0};
  uint64_t number = count.fetch_add(1, std::memory_order_relaxed);
  if (number == 0) number = count.fetch_add(os::random_word(), std::memory_order_relaxed);
  return os::mixed(number);
}

// Whatever a heap reads of a slab without blocks.
void begin(Slab* slab, SizeClass c, uint16_t number, uint64_t chance, bool fresh) {
  slab->size_class = c;
  slab->key = slab_key(c, static_cast<uint16_t>(chance), number);
  slab->free = nullptr;
  slab->remote_batch = 0;
  slab->fresh = fresh;
  slab->rest_purged = false;
  slab->takes = 0;
  slab->holes = 0;
  slab->in_holes = 0;
  slab->aside = false;
  slab->sampled = false;
}

Slab* make(Granule* run, SizeClass c, Owner owner, bool clean) {
  Slab* const slab = static_cast<Slab*>(run);
  slab->owner = owner.heap;
  begin(slab, c, owner.number, key_chance(), clean);
  return slab;
}

// So many bytes of blocks are made together: as many blocks as are put in random order, or where those are much memory,
// which all is touched for it, four at least.
size_t extent_by_chance(size_t size) {
  const size_t most = std::clamp(std::bit_ceil(4 * size), kResidentExtent, kGranule);
  return std::max(std::min(std::bit_ceil(kShuffled * size), most), os::page_size());
}

}  // namespace

Slab* make_slab(SizeClass c, Owner owner, bool first, uint32_t more, Spares* spares) {
  const Want want = {.granules = slab_granules(c), .use = first ? Use::kFirstSlab : Use::kSlab, .size_class = c};
  const Run run = page_heap.take(want, more, spares);
  return run.head == nullptr ? nullptr : make(run.head, c, owner, run.clean);
}

Slab* make_slab_of(Granule* spare, SizeClass c, Owner owner) { return make(spare, c, owner, true); }

void end_slab(Slab* slab) {
  end_all_samples(slab);
  slab->countdown = slab->used_after = 0;
  slab->in_holes = 0;
  __atomic_store_n(&slab->holes, 0, __ATOMIC_RELAXED);
  set_carved(slab, 0);
}

void remake_slab(Slab* slab, SizeClass c, uint64_t chance) { begin(slab, c, owner_in(slab->key), chance, false); }

void set_carved(Slab* slab, uint32_t blocks) {
  __atomic_store_n(&slab->carved, static_cast<uint16_t>(blocks), __ATOMIC_RELAXED);
  __atomic_store_n(&slab->limit, slab_limit(slab->size_class, slab->key, blocks), __ATOMIC_RELAXED);
}

uint32_t blocks_to_carve(const Slab* slab) {
  const size_t size = block_size(slab->size_class);
  const size_t extent = kByChance ? extent_by_chance(size) : slab->fresh ? os::page_size() : kResidentExtent;
  const size_t from = slab->carved * size;
  const size_t to = (from + size + extent - 1) & ~(extent - 1);
  return std::min(std::max(static_cast<uint32_t>((to - from) / size), 1u),
                  slab_capacity(slab->size_class) - slab->carved);
}

void let_go(Slab* slab) {
  page_heap.books.note_untouched(usable_of(slab) * block_size(slab->size_class));
  end_slab(slab);
  page_heap.give_slab(slab);
}

void SlabList::push_front(Slab* slab) {
  slab->state = SlabState::kPartial;
  slab->previous = nullptr;
  slab->next = first_;
  (first_ != nullptr ? first_->previous : last_) = slab;
  first_ = slab;
}

void SlabList::push_back(Slab* slab) {
  slab->state = SlabState::kPartial;
  slab->next = nullptr;
  slab->previous = last_;
  (last_ != nullptr ? last_->next : first_) = slab;
  last_ = slab;
}

void SlabList::remove(Slab* slab) {
  (slab->next != nullptr ? slab->next->previous : last_) = slab->previous;
  (slab->previous != nullptr ? slab->previous->next : first_) = slab->next;
}

}  // namespace annex
