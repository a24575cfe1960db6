// A slab's record, what its class says of it, and its blocks while they are free.
//
// Two cache lines, apart by who writes them: what every thread reads that frees a block, and what the slab's heap alone
// changes with each block that comes back.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/size_class.h"
#include "pages/granule.h"

namespace annex {

class Heap;
namespace support {
class SegregatedHeap;
}

// A free block. Its first word links it to the next one of its list, in the flavours whose lists are linked. Its second
// says that it is free (core/mark.h).
struct Block {
  Block* next;
  uintptr_t mark;
};
static_assert(sizeof(Block) <= kMinAlignment);

// Blocks of one slab, linked from first to last.
struct Chain {
  Block* first;
  Block* last;
  uint32_t count;
};

// Where a slab stands with its heap.
enum class SlabState : uint8_t {
  kCurrent,  // its blocks are what the heap's free list was filled from
  kFull,     // too few free blocks to be worth a visit; in no list
  kPartial,  // in the heap's list of slabs with blocks to give
};

// Synchronization, unless a field says otherwise: its heap's holder (core/heap.h); once all of its blocks wait in the
// heap's inbox, whoever reaps it (remote/inbox.h).
struct Slab : Granule {
  // Another one each time that a slab is made, and constant while it is one; its lower 16 bits are the owner's number.
  // Blocks are marked with it as free (core/mark.h). Any thread reads it.
  uint64_t key;
  // Shared, solo and hardened flavours:
  Heap* owner;            // constant while the slab has blocks in use; any thread reads it
  uint64_t remote_batch;  // the batch of blocks freed by other threads (remote/batch.h); atomic, written by any thread
  Slab* inbox_next;       // next in the owner's inbox, of whoever has it there
  union {
    char* start;   // offload flavour: its first block; constant while the slab has blocks in use
    Block* ready;  // the others, while it is aside: the first block of the list that was ready, which stays there
  };

  alignas(64) Block* free;  // blocks of the slab freed since the heap last took the list; flavours with linked lists
  // Blocks in use; written by the heap's holder alone, also while the heap is taken; and where all blocks have come
  // back and nobody else has the slab, by who reaps it (remote/inbox.h). With linked lists, cut in two so that free()
  // needs one countdown to see all events: used = used_after + countdown.
  //   full slab:   the countdown ends when a fair share is free again; then the slab becomes partial
  //   otherwise:   used_after = 0, and the countdown ends when the slab is empty
  //   empty slab:  used_after = -1 and countdown = 1, so that one free too many is an event as well (16 bits in all)
  //   no blocks:   both are 0 (core/slab.h: end_slab)
  // Offload flavour: countdown is how many blocks are out, and used_after 0; changed by who holds the heap's lock.
  uint16_t countdown;
  uint16_t used_after;  // blocks in use when the countdown ends
  uint16_t carved;      // blocks made so far, from the slab's start; written atomically, read by any thread
  SlabState state;
  bool fresh;      // the slab's uncarved part holds zeros
  uint16_t takes;  // how often the heap has taken a long list of the slab's (core/list_order.h), modulo 2^16
  union {
    uint16_t first_word;  // offload flavour: no word of the slab's bitmap before this one has a bit set
    // The others, while it is aside: how many blocks it counts as used that are not any more, from behind `ready` and
    // of those that the owner held back.
    uint16_t freed_aside;
  };
  uint16_t in_holes;  // of the blocks made: free, and in no list, as a part of them lies in a hole
  bool rest_purged;   // the uncarved part has been given back (core/holes.h: purge_uncarved)
  bool aside;         // holes were made while its owner slept, which has not seen them (core/holes.h)
  // Pages that were given back while the slab was in use, from its first page on (core/holes.h); written atomically,
  // read by any thread.
  uint64_t holes;
  Slab* next;  // in a list of slabs: partial ones (core/slab.h), or those that wait (core/run_cache.h)
  Slab* previous;
  union {
    support::SegregatedHeap* support_heap;  // offload flavour: whose it is; constant while the slab has blocks in use
    Block* kept;  // the others, while their owner sleeps: free blocks (core/holes.h: make_holes_aside)
  };
  union {
    uint64_t* bitmap;  // offload flavour: of its free blocks (support/side_tables.h); constant like the heap
    // The others, for who looks for holes (core/holes.h: is_worth_a_walk), 0 where nobody has: one more than how many
    // blocks were in use when the slab's free ones were last walked, and when it was last seen.
    struct {
      uint16_t walked_with;
      uint16_t seen_with;
      bool walks;    // while their owner sleeps: whether it is one that is walked
      bool sampled;  // since it was made: whether one of its blocks was a sample (core/sample_points.h)
    };
  };
};
static_assert(sizeof(Slab) == sizeof(Granule));

// The record of a run's head as that of a slab; nullptr where it is none.
inline Slab* as_slab(Granule* head) { return head->kind == Kind::kSlab ? static_cast<Slab*>(head) : nullptr; }

// Slabs: as few granules as will do, so that a heap with few blocks of a class holds little memory for it, and no more
// than an eighth that no block covers.
constexpr uint32_t slab_granules_by_rule(SizeClass c) {
  uint32_t granules = 1;
  while (granules * kGranule % block_size(c) * 8 > granules * kGranule) ++granules;
  return granules;
}
inline constexpr auto kSlabGranules = [] {
  std::array<uint8_t, kClasses> granules{};
  for (SizeClass c = 0; c < kClasses; ++c) granules[c] = static_cast<uint8_t>(slab_granules_by_rule(c));
  return granules;
}();
constexpr uint32_t slab_granules(SizeClass c) { return kSlabGranules[c]; }
inline constexpr size_t kLongestSlab = *std::max_element(kSlabGranules.begin(), kSlabGranules.end()) * kGranule;

// No slab has a power of two of blocks up to kColoured bytes: where one would, its last place stays empty. What lies a
// power of two of blocks apart, such as the upper nodes of a tree that was built in order, would else compete for the
// same few sets of the caches. (Slab colouring by other means: Bonwick, "The Slab Allocator", 1994.)
inline constexpr size_t kColoured = 512;
constexpr uint32_t slab_capacity_by_rule(SizeClass c) {
  const size_t size = block_size(c);
  const size_t blocks = slab_granules_by_rule(c) * kGranule / size;
  return static_cast<uint32_t>(size <= kColoured && std::has_single_bit(blocks) ? blocks - 1 : blocks);
}
inline constexpr auto kSlabCapacity = [] {
  std::array<uint16_t, kClasses> blocks{};
  for (SizeClass c = 0; c < kClasses; ++c) blocks[c] = static_cast<uint16_t>(slab_capacity_by_rule(c));
  return blocks;
}();
constexpr uint32_t slab_capacity(SizeClass c) { return kSlabCapacity[c]; }
static_assert(kGranule / kMinAlignment < UINT16_MAX);

// The key of a slab is 2^64 / block size, and a little more: with s for the block size and step = key * s - 2^64,
//
//   offset * key  mod 2^64  =  k * step    where the offset is k * s
//                           >= key         everywhere else, below 64 KiB
//
// So one multiplication and one comparison tell the blocks made so far from interior pointers and from blocks that were
// never made:  offset * key < carved * step = limit.  It holds for each "little more" that keeps 64 KiB / s * step
// below the key: 16 of its bits are by chance, and 16 are the number of the slab's owner.
constexpr uint64_t slab_key(SizeClass c, uint16_t chance, uint16_t owner) {
  const uint64_t quotient = UINT64_MAX / block_size(c);  // rounded down; one less where the size is a power of two
  return ((quotient >> 16) + 2 + chance) << 16 | owner;
}
constexpr uint64_t slab_limit(SizeClass c, uint64_t key, uint32_t carved) {
  return slab_granules(c) == 1 ? key * block_size(c) * carved : 0;
}
constexpr uint16_t owner_in(uint64_t key) { return static_cast<uint16_t>(key); }

// Whether a block starts so many bytes after the start of a granule. True of slabs of one granule alone. For the slab's
// owner, who alone changes it while it has blocks in use, and for everyone.
[[gnu::always_inline]] inline bool own_block_starts_at(const Slab* slab, uint64_t offset) {
  return offset * slab->key < slab->limit;
}
[[gnu::always_inline]] inline bool block_starts_at(const Slab* slab, uint64_t offset) {
  return offset * slab->key < __atomic_load_n(&slab->limit, __ATOMIC_RELAXED);
}

// How many of a slab's blocks are in use or in a list.
constexpr uint32_t usable_of(const Slab* slab) { return static_cast<uint32_t>(slab->carved - slab->in_holes); }
// Whether there are blocks to make, for the first time or again.
constexpr bool has_more(const Slab* slab) {
  return slab->carved < slab_capacity(slab->size_class) || slab->in_holes > 0;
}

// How many of a slab's blocks are in use.
[[gnu::always_inline]] constexpr uint32_t used_of(const Slab* slab) {
  return static_cast<uint16_t>(slab->used_after + slab->countdown);
}
// Says so of a slab that is not full.
constexpr void set_used(Slab* slab, uint32_t used) {
  slab->used_after = used == 0 ? UINT16_MAX : 0;
  slab->countdown = used == 0 ? 1 : static_cast<uint16_t>(used);
}

}  // namespace annex
