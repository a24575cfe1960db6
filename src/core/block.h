// From a pointer that the program hands in to what it points at, with every check that the fast paths leave out.
#pragma once

#include <cstddef>

#include "core/arena.h"
#include "core/die.h"
#include "core/free_block.h"
#include "core/granule.h"

namespace annex {

// The head of the slab or span of which a block starts at `address`, in use or free; nullptr where there is none, and
// *problem says why.
inline Granule* find_block(const void* address, const char** problem) {
  Granule* granule = granule_of(address);
  if (granule == nullptr) {
    *problem = "a pointer that Annex did not allocate:";
    return nullptr;
  }
  size_t offset = reinterpret_cast<uintptr_t>(address) % kGranule;
  if (granule->kind == Kind::kSlabTail) {
    offset += granule->back * kGranule;
    granule -= granule->back;
  }
  switch (granule->kind) {
    case Kind::kSlab: {
      const uint32_t size = static_cast<uint32_t>(block_size(granule->size_class));
      const uint32_t within = static_cast<uint32_t>(offset);
      const bool made = within / size < __atomic_load_n(&granule->carved, __ATOMIC_RELAXED);
      if (made && within % size == 0) return granule;
      *problem = made ? kIntoABlock : kNoBlock;
      return nullptr;
    }
    case Kind::kSpan:
      if (offset == 0) return granule;
      *problem = kIntoABlock;
      return nullptr;
    default:
      *problem = kNoBlock;
      return nullptr;
  }
}

inline size_t usable_size(const Granule* head) {
  return head->kind == Kind::kSlab ? block_size(head->size_class) : head->span.bytes;
}

// The same as find_block, for a slab of one granule in the first arena; else nullptr, which says nothing. What the fast
// path of free does, for the others.
inline Granule* find_block_fast(const void* address) {
  const size_t offset = reinterpret_cast<uintptr_t>(address) - primary.start;
  if (offset >> kGranuleShift >= primary_granules()) return nullptr;
  Granule* slab = primary_granule(primary.start, offset >> kGranuleShift);
  return block_starts_at(slab, offset % kGranule) ? slab : nullptr;
}

// For a pointer to a block, in use or free: the program ends with one line where it is none.
inline Granule* block_or_die(const void* address) {
  if (Granule* slab = find_block_fast(address)) return slab;
  const char* problem = nullptr;
  Granule* head = find_block(address, &problem);
  if (head == nullptr) [[unlikely]]
    die(problem, address);
  return head;
}

// For a pointer to a block that must be in use. (Not for the offload flavour's slabs, whose keys are elsewhere.)
inline Granule* live_block_or_die(const void* address) {
  Granule* head = block_or_die(address);
  if (head->kind == Kind::kSlab && is_marked(head->key, address)) [[unlikely]]
    die(kFreedTwice, address);
  return head;
}

}  // namespace annex
