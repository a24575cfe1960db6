// The fast path of free, for flavours whose free blocks are linked: the block goes to the front of its slab's list.
//
// Every check is here (docs/architecture.md, "What is checked"): what fails one is slow()'s to tell apart, and
// elsewhere()'s where the address is out of reach. A slab that is not the caller's is foreign()'s, which gets the
// granule and the key that were looked at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "pages/arena.h"

namespace annex {

// `start` is primary.start, or kNowhere. is_own(key): whether the slab with that key is the caller's. settle(slab): of
// its heap, at the moment when enough blocks have come back.
template <void slow(void*), void elsewhere(void*), class IsOwn, class Foreign, class Settle>
[[gnu::always_inline]] inline void release_within(uintptr_t start, void* address, IsOwn is_own, Foreign foreign,
                                                  Settle settle) {
  const size_t index = (reinterpret_cast<uintptr_t>(address) - start) >> kGranuleShift;
  if (index >= primary_granules()) [[unlikely]]
    return elsewhere(address);
  Slab* slab = static_cast<Slab*>(primary_granule(start, index));
  Block* block = static_cast<Block*>(address);
  const uint64_t key = slab->key;
  if (!is_own(key)) [[unlikely]]
    return foreign(slab, key);
  if (!own_block_starts_at(slab, reinterpret_cast<uintptr_t>(address) % kGranule)) [[unlikely]]
    return slow(address);
  if (is_marked(key, block)) [[unlikely]]  // it is free
    return slow(address);
  set_next(block, slab->free);
  mark_free(key, block);
  std::atomic_signal_fence(std::memory_order_release);  // who takes the heap may stop it here (core/holes.h)
  slab->free = block;
  if (--slab->countdown == 0) [[unlikely]]
    settle(slab);
}

}  // namespace annex
