// Offload: from a pointer that the program hands in to what it points at, by the class map first
// (support/side_tables.h). What core/block.h is for the other flavours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/block.h"
#include "core/die.h"
#include "core/holes.h"
#include "support/segregated_heap.h"
#include "support/side_tables.h"

namespace annex::front {

// The class map's word for an address; 0 for one of which it says nothing.
inline uint64_t mapped_word(const void* address) {
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - support::mapped.base);
  if (offset >= __atomic_load_n(&support::mapped.bytes, __ATOMIC_ACQUIRE)) return 0;
  return __atomic_load_n(support::mapped.map + (offset >> kGranuleShift), __ATOMIC_RELAXED);
}

// A block in use: its class and the key of its marks; kClasses for a span.
struct Live {
  SizeClass size_class;
  uint64_t key = 0;
};

// For a slab with holes, whose end says nothing: the program ends with one line where the block is not out.
[[gnu::cold]] inline void check_beside_holes(const void* address) {
  const Slab* const slab = static_cast<Slab*>(block_or_die(address));
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - slab->start);
  if (in_hole(slab, offset)) die(kFreedTwice, address, slab);
  if (support::SegregatedHeap::is_free(slab, address)) die(kNoBlock, address, slab);
}

// The program ends with one line where it is no such block. Only what the class map does not know to be a block of a
// slab of one granule has its granule looked at.
inline Live live_or_die(const void* address) {
  uint64_t word = mapped_word(address);
  SizeClass c = support::class_of_tag(support::tag_in(word));
  const uint32_t magic = word != 0 ? support::slab_magic(c) : 0;
  const uint32_t within = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) % kGranule);
  if (within * magic >= magic) {
    Granule* const head = block_or_die(address);
    if (head->kind == Kind::kSpan) return {kClasses};
    c = head->size_class;
    word = support::map_word(address);
  }
  if (within >= support::end_in(word)) {
    if ((word & support::kHasHoles) == 0) die_at(kNoBlock, address);
    check_beside_holes(address);
  }
  const uint64_t key = support::key_beside_holes(word);
  if (is_marked(key, address)) die_at(kFreedTwice, address);
  return {c, key};
}

}  // namespace annex::front
