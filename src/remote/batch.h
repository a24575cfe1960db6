// The batch of a slab: blocks that other threads have freed, linked, waiting for the slab's owner.
//
// One word holds all of it, so that one compare-and-swap adds a chain of blocks and one exchange takes everything, with
// its count (the owner's books need the count, and no walk to get it):
//
//   word = count << 32 | offset of the first block from the slab's start; 0: empty
//
// This is the message of a message-passing allocator, one batch a slab (BatchIt, section 3). What a thread frees is
// collected in its outbox first (outbox.h).
//
// Synchronization: any thread adds (release), the owner takes (acquire). Adding and taking everything is free of the
// ABA problem.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/granule.h"

namespace annex::remote {

struct Batch {
  Block* first;
  uint32_t count;
};

constexpr uint32_t batch_count(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
constexpr uint32_t batch_offset(uint64_t word) { return static_cast<uint32_t>(word); }

// Adds a chain of `count` blocks, from `first` to `last`, and returns how many were there before. Where that is 0, and
// only there, the caller must tell the owner.
inline uint32_t add(Granule* slab, char* slab_start, Block* first, Block* last, uint32_t count) {
  std::atomic_ref<uint64_t> word(slab->remote);
  const uint64_t offset = static_cast<uint64_t>(reinterpret_cast<char*>(first) - slab_start);
  uint64_t seen = word.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    last->next = seen == 0 ? nullptr : reinterpret_cast<Block*>(slab_start + batch_offset(seen));
    next = (uint64_t{batch_count(seen)} + count) << 32 | offset;
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  return batch_count(seen);
}

// Whether every block of the slab is in the batch, and the owner has the slab in no list of its own: then nobody but
// the holder of its place in the inbox can reach it.
inline bool complete(Granule* slab) {
  const uint64_t word = __atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE);
  return batch_count(word) == slab->capacity &&
         std::atomic_ref<SlabState>(slab->state).load(std::memory_order_acquire) == SlabState::kFull;
}

inline Batch take(Granule* slab, char* slab_start) {
  // Release, too: whoever finds the batch empty after this may write inbox_next, which the owner has read before.
  const uint64_t word = std::atomic_ref<uint64_t>(slab->remote).exchange(0, std::memory_order_acq_rel);
  return {reinterpret_cast<Block*>(slab_start + batch_offset(word)), batch_count(word)};
}

}  // namespace annex::remote
