// Slabs as heaps of every kind use them: how one is made, listed, and let go. How its free blocks are kept is its
// heap's affair (core/heap.h: linked through the blocks; support/segregated_heap.h: in a bitmap apart).
//
// Synchronization: a slab belongs to one heap; making it and letting it go take the arena lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/granule.h"

namespace annex {

// A full slab is worth a visit again when this many of its blocks are free: fewer, and the slow path runs for next to
// nothing; more, and memory lies idle.
constexpr uint32_t fair_share(uint32_t capacity) { return std::max(capacity / 8, 1u); }

// How much is carved at a time where the memory is resident already. Untouched memory is carved page by page.
inline constexpr size_t kResidentExtent = 16384;

// A slab without blocks, whose keys have the owner's number in them; nullptr where memory is exhausted. Of clean memory
// rather than dirty where it is the `first` of its class, and up to `more` clean runs beside it, for later
// (core/runs.h).
Granule* make_slab(SizeClass c, Heap* owner, uint16_t number, bool first = false, uint32_t more = 0,
                   Granule** spares = nullptr);
// A slab of such a run.
void make_slab_of(Granule* spare, SizeClass c, Heap* owner, uint16_t number);

// A slab that no longer belongs to any list, and none of whose blocks is in use, has no blocks any more: the run is the
// owner's. Then it is made a slab again, of a class with slabs of the same length and with another key, or given back
// (core/runs.h: give_slab_run).
void end_slab(Granule* slab);
void remake_slab(Granule* slab, SizeClass c, uint64_t chance);

// So many of the slab's blocks have been made. Other threads compare pointers with it (core/block.h).
void set_carved(Granule* slab, uint32_t blocks);

// How many blocks to carve next out of a slab that has some left: those that end in the page (or extent) in which the
// first of them ends.
uint32_t blocks_to_carve(const Granule* slab);

// Ends it, takes its blocks off what is touched, and gives it back. Any thread may.
void let_go(Granule* slab);

// Partial slabs of one class, linked through `next` and `previous`.
class SlabList {
 public:
  Granule* first() const { return first_; }
  void push_front(Granule* slab);
  void push_back(Granule* slab);
  void remove(Granule* slab);

 private:
  Granule* first_ = nullptr;
  Granule* last_ = nullptr;
};

}  // namespace annex
