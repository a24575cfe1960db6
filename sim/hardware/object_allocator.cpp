// One core's objects: see object_allocator.h.
#include "hardware/object_allocator.h"

#include <algorithm>
#include <numeric>

#include "hardware/unit.h"

namespace annex::sim {

namespace {

constexpr Address kHeaders = kUnitMemory + (Address{4} << 32);
constexpr Address kOfCore = Address{1} << 24;  // 2^18 arenas; then their lines are used again

}  // namespace

ObjectAllocator::ObjectAllocator(const MementoParameters& parameters, unsigned core, UnitMemory memory,
                                 TransferCache& transfer)
    : objects_(parameters.objects),
      batch_(parameters.batch),
      arena_(parameters.arena),
      hit_(parameters.hit),
      core_(core),
      memory_(memory),
      transfer_(transfer),
      kept_(parameters.classes()),
      arenas_(parameters.classes()) {
  memory_.map(kHeaders + core * kOfCore, kHeaders + (core + 1) * kOfCore);
}

Cycles ObjectAllocator::taken_up(Cycles at) {
  if (at >= exchanges_until_) return at;
  statistics_.busy += exchanges_until_ - at;
  return exchanges_until_;
}

Cycles ObjectAllocator::allocate(unsigned size_class, Cycles at) {
  ++statistics_.mallocs;
  Cycles had = at + hit_;
  if (kept_[size_class] > 0) {
    ++statistics_.malloc_hits;
  } else {
    had = exchanges_until_ = fetch(size_class, had);
    statistics_.fetching += had - at - hit_;
  }
  --kept_[size_class];
  return had;
}

Cycles ObjectAllocator::fetch(unsigned size_class, Cycles at) {
  TransferCache::Batch batch = transfer_.take(core_, size_class, batch_, at);
  if (batch.objects > 0) {
    ++statistics_.batches_taken;
    statistics_.objects_taken += batch.objects;
  } else {
    batch = make(size_class, batch.done);
    ++statistics_.batches_made;
    statistics_.objects_made += batch.objects;
  }
  kept_[size_class] += batch.objects;
  return batch.done;
}

TransferCache::Batch ObjectAllocator::make(unsigned size_class, Cycles at) {
  Arena& arena = arenas_[size_class];
  if (arena.left == 0) {
    arena = {kHeaders + core_ * kOfCore + statistics_.arenas * kLine % kOfCore, arena_};
    ++statistics_.arenas;
  }
  const uint32_t objects = std::min(arena.left, batch_);
  arena.left -= objects;
  return {objects, memory_.store(core_, arena.header, at)};
}

void ObjectAllocator::free(unsigned size_class, Cycles at) {
  ++statistics_.frees;
  if (kept_[size_class] < objects_) {
    ++statistics_.free_hits;
  } else {
    const Cycles looked = at + hit_;
    exchanges_until_ = transfer_.put(core_, size_class, batch_, looked);
    statistics_.putting += exchanges_until_ - looked;
    ++statistics_.batches_put;
    statistics_.objects_put += batch_;
    kept_[size_class] -= batch_;
  }
  ++kept_[size_class];
}

uint64_t ObjectAllocator::kept() const { return std::accumulate(kept_.begin(), kept_.end(), uint64_t{0}); }

}  // namespace annex::sim
