// From a pointer that the program hands in to what it points at, with every check that the fast paths leave out.
#pragma once

#include <cstddef>

#include "core/die.h"
#include "core/free_block.h"
#include "core/holes.h"
#include "core/slab_record.h"
#include "pages/arena.h"

namespace annex {

// The slab of which a block starts at an address, where it is one of one granule in the first arena; else nullptr,
// which says nothing. What the fast path of free does, for the others.
inline Slab* find_block_fast(const void* address) {
  const size_t offset = reinterpret_cast<uintptr_t>(address) - primary.start;
  if (offset >> kGranuleShift >= primary_granules()) return nullptr;
  Slab* const slab = static_cast<Slab*>(primary_granule(primary.start, offset >> kGranuleShift));
  return block_starts_at(slab, offset % kGranule) ? slab : nullptr;
}

// What a pointer points at: the head of the slab or span of which a block starts there, in use or free. Where there is
// none, `problem` says why, and `head` is the granule's record, or nullptr in no arena.
struct Pointee {
  Granule* head;
  const char* problem;
};

inline Pointee pointee_of(const void* address) {
  if (Slab* slab = find_block_fast(address)) return {slab, nullptr};
  Granule* const granule = granule_of(address);
  if (granule == nullptr) return {nullptr, "a pointer that Annex did not allocate:"};
  size_t offset = reinterpret_cast<uintptr_t>(address) % kGranule;
  Granule* head = granule;
  if (granule->kind == Kind::kSlabTail) {
    offset += granule->back * kGranule;
    head = granule - granule->back;
  }
  switch (head->kind) {
    case Kind::kSlab: {
      const uint32_t size = static_cast<uint32_t>(block_size(head->size_class));
      const uint32_t within = static_cast<uint32_t>(offset);
      const bool made = within / size < __atomic_load_n(&static_cast<Slab*>(head)->carved, __ATOMIC_RELAXED);
      if (made && within % size == 0) return {head, nullptr};
      return {head, made ? kIntoABlock : kNoBlock};
    }
    case Kind::kSpan:
      return {head, offset == 0 ? nullptr : kIntoABlock};
    default:
      return {head, kNoBlock};
  }
}

// For a pointer to a block, in use or free: the program ends with one line where it is none.
inline Granule* block_or_die(const void* address) {
  if (Slab* const slab = find_block_fast(address)) [[likely]]
    return slab;
  const auto [head, problem] = pointee_of(address);
  if (problem != nullptr) [[unlikely]]
    die(problem, address, head);
  return head;
}

// Whether a block of the slab is free; `key` is that of its mark. In this order: a hole is one before its memory goes,
// and the mark with it.
inline bool block_is_free(const Slab* slab, uint64_t key, const void* block) {
  return is_marked(key, block) || in_hole(slab, static_cast<size_t>(static_cast<const char*>(block) - start_of(slab)));
}

// For a pointer to a block that must be in use. (Not for the offload flavour's slabs, whose keys are elsewhere.)
inline Granule* live_block_or_die(const void* address) {
  auto [head, problem] = pointee_of(address);
  if (problem == nullptr && head->kind == Kind::kSlab) {
    const Slab* const slab = static_cast<Slab*>(head);
    const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - start_of(slab));
    if (is_marked(slab->key, address) || in_hole(slab, offset)) problem = kFreedTwice;
  }
  if (problem != nullptr) [[unlikely]]
    die(problem, address, head);
  return head;
}

inline size_t usable_size(Granule* head) {
  const Span* const span = as_span(head);
  return span != nullptr ? span->bytes : block_size(head->size_class);
}

}  // namespace annex
