// From a pointer that the program hands in to what it points at, with every check that the fast paths leave out.
#pragma once

#include <cstddef>

#include "core/arena.h"
#include "core/granule.h"
#include "os/message.h"

namespace annex {

// The head of the slab or span whose live block starts at `address`; nullptr where there is none, and *problem says why.
inline Granule* find_block(const void* address, const char** problem) {
  Granule* granule = granule_of(address);
  if (granule == nullptr) {
    *problem = "a pointer that Annex did not allocate:";
    return nullptr;
  }
  if (granule->kind == Kind::kSlabTail) granule -= granule->back;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - start_of(granule));
  switch (granule->kind) {
    case Kind::kSlab: {
      const size_t size = block_size(granule->size_class);
      if (offset % size == 0 && offset / size < granule->carved) return granule;
      *problem = "a pointer into a block (or misaligned):";
      return nullptr;
    }
    case Kind::kSpan:
      if (offset == 0) return granule;
      *problem = "a pointer into a block (or misaligned):";
      return nullptr;
    default:
      *problem = "a pointer to no allocated block (freed twice?):";
      return nullptr;
  }
}

inline size_t usable_size(const Granule* head) {
  return head->kind == Kind::kSlab ? block_size(head->size_class) : head->bytes;
}

// The same for a pointer that must be valid: the program ends with one line where it isn't.
inline Granule* block_or_die(const void* address) {
  const char* problem = nullptr;
  Granule* head = find_block(address, &problem);
  if (head == nullptr) [[unlikely]] os::fatal(problem, address);
  return head;
}

}  // namespace annex
