// The batch of a slab: blocks that other threads have freed, linked, waiting for the slab's owner.
//
// One word holds all of it, so that one compare-and-swap adds a chain of blocks and one exchange takes everything. The
// count and the last block spare the owner a walk through blocks that are in other cores' caches:
//
//   word = count << 32 | last << 16 | first,  blocks as their distance from the slab's start / 16 bytes;  0: empty
//
// Messages are sorted into it when a heap does not take them in (inbox.h), and it is where what a thread without an
// outbox frees goes at once. BatchIt (section 3) sends by it alone.
//
// Synchronization: any thread adds (release), the owner takes (acquire). Adding and taking everything is free of the
// ABA problem.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/free_block.h"
#include "core/slab_record.h"
#include "remote/steps.h"

namespace annex::remote {

constexpr uint32_t batch_count(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

inline Block* block_at(char* slab_start, uint64_t distance) {
  return reinterpret_cast<Block*>(slab_start + (distance & 0xffff) * kMinAlignment);
}
inline uint64_t distance_of(const Block* block, const char* slab_start) {
  return static_cast<uint64_t>(reinterpret_cast<const char*>(block) - slab_start) / kMinAlignment;
}
static_assert(kLongestSlab / kMinAlignment <= 0x10000);

// Adds a chain, and returns how many blocks were there before. Where that is 0, and only there, the caller must tell
// the owner.
inline uint32_t add(Slab* slab, char* slab_start, const Chain& chain) {
  AtomicRef<uint64_t> word(slab->remote_batch);
  const uint64_t first = distance_of(chain.first, slab_start);
  const uint64_t last = distance_of(chain.last, slab_start) << 16;
  uint64_t seen = word.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    set_next(chain.last, block_at(slab_start, seen));  // where the batch is empty nobody will follow it
    next = (uint64_t{batch_count(seen)} + chain.count) << 32 | (seen == 0 ? last : seen & 0xffff0000) | first;
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  return batch_count(seen);
}

// Whether every block of the slab is in the batch, and the owner has the slab in no list of its own: then nobody but
// the holder of its place in the inbox can reach it.
inline bool complete(Slab* slab) {
  const uint64_t word = AtomicRef<uint64_t>(slab->remote_batch).load(std::memory_order_acquire);
  return batch_count(word) == capacity_of(slab) &&
         AtomicRef<SlabState>(slab->state).load(std::memory_order_acquire) == SlabState::kFull;
}

inline Chain take_all(Slab* slab, char* slab_start) {
  // Release, too: whoever finds the batch empty after this may write inbox_next, which the owner has read before.
  const uint64_t word = AtomicRef<uint64_t>(slab->remote_batch).exchange(0, std::memory_order_acq_rel);
  return {block_at(slab_start, word), block_at(slab_start, word >> 16), batch_count(word)};
}

}  // namespace annex::remote
