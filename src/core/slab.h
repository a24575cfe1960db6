// Slabs as heaps of every kind use them: how one is made, listed, and let go. How its free blocks are kept is its
// heap's affair (core/heap.h: linked through the blocks; support/segregated_heap.h: in a bitmap apart).
//
// Synchronization: a slab belongs to one heap; making it and letting it go take the page heap's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/slab_record.h"
#include "pages/page_heap.h"

namespace annex {

// A full slab is worth a visit again when this many of its blocks are free: fewer, and the slow path runs for next to
// nothing; more, and memory lies idle.
constexpr uint32_t fair_share(uint32_t capacity) { return std::max(capacity / 8, 1u); }

// How much is carved at a time where the memory is resident already. Untouched memory is carved page by page.
inline constexpr size_t kResidentExtent = 16384;

// Whose slab is made: the heap, and its number, which is in their keys.
struct Owner {
  Heap* heap;
  uint16_t number;
};

// A slab without blocks; nullptr where memory is exhausted. Of clean memory rather than dirty where it is the `first`
// of its class. Where `spares` are wanted and there are none, some are taken with it: up to `more`.
Slab* make_slab(SizeClass c, Owner owner, bool first = false, uint32_t more = 0, Spares* spares = nullptr);
// The same of a spare run.
Slab* make_slab_of(Granule* spare, SizeClass c, Owner owner);

// A slab in no list and without a block in use is a slab without blocks: countdown, carved, holes and limit are 0. Then
// it is made a slab again, of a class with slabs of the same length and with another key, or given back
// (PageHeap::give_slab).
void end_slab(Slab* slab);
void remake_slab(Slab* slab, SizeClass c, uint64_t chance);

// So many of the slab's blocks have been made. Other threads compare pointers with it (core/block.h).
void set_carved(Slab* slab, uint32_t blocks);

// How many blocks to carve next out of a slab that has some left: those that end in the page (or extent) in which the
// first of them ends.
uint32_t blocks_to_carve(const Slab* slab);

// Ends it, takes its blocks off what is touched, and gives it back: its holder, or whoever reaps it (remote/inbox.h).
void let_go(Slab* slab);

// Partial slabs of one class, linked through `next` and `previous`.
class SlabList {
 public:
  Slab* first() const { return first_; }
  void push_front(Slab* slab);
  void push_back(Slab* slab);
  void remove(Slab* slab);

 private:
  Slab* first_ = nullptr;
  Slab* last_ = nullptr;
};

}  // namespace annex
