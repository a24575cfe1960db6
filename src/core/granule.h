// Granules and their metadata: the vocabulary of the core.
//
//   arena     one range of addresses in which memory is mapped as needed, cut into granules
//   granule   64 KiB of an arena; the unit in which slabs and spans are made
//   run       consecutive granules that are one thing: a slab, a span, or free
//   slab      a run whose blocks all have one size class; it belongs to one heap
//   span      a run that is one large block
//   block     what malloc returns
//   clean     free and never touched, or given back to the system: reads as zero, costs no memory
//   dirty     free and (perhaps) still resident
//   unmapped  free, and not even mapped any more: where addresses are limited
//
// Metadata is segregated (SpeedMalloc section 4, NextGen-Malloc section 3): an array of Granule, 128 bytes for each
// 64 KiB, stands apart, so that a block and its metadata never share a line or a page, and
//
//   granule_of(p) = metadata + (p - start) / 64 KiB
//
// needs no load. Only the first granule of a run (its head) and the last one are kept up to date; whatever lies
// between has magic 0 and a kind that is neither a head nor free at either end of an allocated run.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/size_class.h"
#include "os/guards.h"

namespace annex {

inline constexpr size_t kGranuleShift = 16;
inline constexpr size_t kGranule = size_t{1} << kGranuleShift;
inline constexpr size_t kHugePage = size_t{2} << 20;
inline constexpr uint32_t kGranulesPerHugePage = kHugePage / kGranule;

// To a multiple of a power of two.
template <class T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) & ~(multiple - 1);
}
template <class T>
constexpr T round_down(T value, T multiple) {
  return value & ~(multiple - 1);
}

class Heap;
struct Granule;
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

enum class Kind : uint8_t {
  kNone,       // never used, or inside a run
  kSlab,       // head of a slab
  kSlabTail,   // a later granule of a slab: `back` granules after its head
  kSpan,       // head of a span
  kSpanTail,   // last granule of a span of several
  kFree,       // head or last granule of a free run
  kPurging,    // head or last granule of a run that is being given back or populated, or out of use for good
  kNoBytes,    // hardened build: head of the run where blocks of no bytes have their addresses
  kSpanWaits,  // hardened build: head of a span that is freed, whose addresses are not to be used again yet
};

// What a free run's addresses hold.
enum class FreeState : uint8_t {
  kClean,     // zeros, and no memory
  kDirty,     // perhaps memory, and what was written there last
  kUnmapped,  // nothing: given back, where addresses are scarce
};

// Where a slab stands with its heap.
enum class SlabState : uint8_t {
  kCurrent,  // its blocks are what the heap's free list was filled from
  kFull,     // too few free blocks to be worth a visit; in no list
  kPartial,  // in the heap's list of slabs with blocks to give
};

struct SpanRecord {
  size_t bytes;  // usable size, a multiple of the page size
  // Hardened build: granules before it, and one behind it, if any are before it, are nobody's to use.
  uint32_t before;
  os::GuardKind guards[2];  // hardened build: before it and behind
  size_t asked;             // hardened build: what the program asked for; of blocks of no bytes: how many are in use
};

// The place of a free run among those of all arenas, by age.
struct AgeRecord {
  Granule* newer;
  Granule* older;
  uint64_t freed_ms;  // since when it has been free
};

// Two cache lines, apart by who writes them: what every thread reads that frees a block, and what the slab's heap alone
// changes with each block that comes back.
struct alignas(128) Granule {
  // 0 for whatever is no slab of one granule. For such a slab, what free() tests an offset by (slab_key, below).
  uint64_t limit;
  union {
    struct {
      // Another one each time that a slab is made, and constant while it is one; its lower 16 bits are the owner's
      // number. Blocks are marked with it as free (core/mark.h).
      uint64_t key;
      union {
        Heap* owner;                    // constant while the slab has blocks in use
        support::SegregatedHeap* heap;  // the same in the offload flavour
      };
      union {
        uint64_t remote;  // shared flavour: the batch of blocks freed by other threads (remote/batch.h); atomic
        char* start;      // offload flavour: its first block
      };
      union {
        Granule* inbox_next;  // shared flavour: next in the owner's inbox
        uint64_t* bitmap;     // offload flavour: of its free blocks (support/side_tables.h)
      };
    };  // of a slab
    SpanRecord span;
    AgeRecord age;  // of a free dirty run
  };
  uint32_t length;  // of a span or free run: granules; in its head and its last granule
  Kind kind;
  SizeClass size_class;  // of a slab
  union {
    uint8_t back;             // of a slab tail
    FreeState state_of_free;  // of a free run, in its head and its last granule
    bool dirty;               // hardened build: of a span that waits to be used again
  };
  bool tail_unmapped;  // of a span: the addresses behind its usable size have been given back (core/runs.cpp)

  alignas(64) Block* free;  // blocks of the slab freed since the heap last took the list; flavours with linked lists
  // Blocks in use, cut in two so that free() needs one countdown to see all events: used = used_after + countdown.
  //   full slab:   the countdown ends when a fair share is free again; then the slab becomes partial
  //   otherwise:   used_after = 0, and the countdown ends when the slab is empty
  //   empty slab:  used_after = -1 and countdown = 1, so that one free too many is an event as well (16 bits in all)
  uint16_t countdown;
  uint16_t used_after;  // blocks in use when the countdown ends
  uint16_t carved;      // blocks made so far, from the slab's start
  SlabState state;
  bool fresh;  // the slab's uncarved part has never been touched
  union {
    uint32_t takes;       // how often the heap has taken a long list of the slab's (core/list_order.h)
    uint32_t first_word;  // offload flavour: no word of the slab's bitmap before this one has a bit set
  };
  Granule* next;  // in a list of partial slabs, or of free runs of like length
  Granule* previous;
};
static_assert(sizeof(Granule) == 128);

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
[[gnu::always_inline]] inline bool own_block_starts_at(const Granule* slab, uint64_t offset) {
  return offset * slab->key < slab->limit;
}
[[gnu::always_inline]] inline bool block_starts_at(const Granule* slab, uint64_t offset) {
  return offset * slab->key < __atomic_load_n(&slab->limit, __ATOMIC_RELAXED);
}

// How many of a slab's blocks are in use.
[[gnu::always_inline]] constexpr uint32_t used_of(const Granule* slab) {
  return static_cast<uint16_t>(slab->used_after + slab->countdown);
}
// Says so of a slab that is not full.
constexpr void set_used(Granule* slab, uint32_t used) {
  slab->used_after = used == 0 ? UINT16_MAX : 0;
  slab->countdown = used == 0 ? 1 : static_cast<uint16_t>(used);
}

}  // namespace annex
