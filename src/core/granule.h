// Granules and their metadata: the vocabulary of the core.
//
//   arena     one reserved range of addresses, cut into granules
//   granule   64 KiB of an arena; the unit in which slabs and spans are made
//   run       consecutive granules that are one thing: a slab, a span, or free
//   slab      a run whose blocks all have one size class; it belongs to one heap
//   span      a run that is one large block
//   block     what malloc returns
//   clean     free and never touched, or given back to the system: reads as zero, costs no memory
//   dirty     free and (perhaps) still resident
//
// Metadata is segregated (SpeedMalloc section 4, NextGen-Malloc section 3): an array of Granule, 64 bytes for each
// 64 KiB, stands at the start of the arena, so that a block and its metadata never share a line or a page, and
//
//   granule_of(p) = metadata + (p - base) / 64 KiB
//
// needs no load. Only the first granule of a run (its head) and the last one are kept up to date; whatever lies
// between has magic 0 and a kind that is neither a head nor free at either end of an allocated run.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/size_class.h"

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

inline constexpr char kFreedTwice[] = "a block freed twice (or never allocated):";

// Blocks of one slab, linked from first to last.
struct Chain {
  Block* first;
  Block* last;
  uint32_t count;
};

enum class Kind : uint8_t {
  kNone,      // never used, or inside a run
  kSlab,      // head of a slab
  kSlabTail,  // a later granule of a slab: `back` granules after its head
  kSpan,      // head of a span
  kSpanTail,  // last granule of a span of several
  kFree,      // head or last granule of a free run
  kPurging,   // head or last granule of a run that is being given back or populated
};

// Where a slab stands with its heap.
enum class SlabState : uint8_t {
  kCurrent,  // its blocks are what the heap's free list was filled from
  kFull,     // too few free blocks to be worth a visit; in no list
  kPartial,  // in the heap's list of slabs with blocks to give
};

struct alignas(64) Granule {
  // What free() needs for a block of its own heap comes first: one line, one load each.
  union {
    Block* free;          // slab: blocks freed since the heap last took the list
    uint32_t first_word;  // slab, offload flavour: no word of its bitmap before this one has a bit set
    Granule* newer;       // free dirty run: the next one in order of age
  };
  union {
    struct {
      // ceil(2^32 / block size) for a slab of one granule, 0 for everything else. An offset is a multiple of the block
      // size exactly where uint32(offset * magic) < magic, so one comparison tells valid blocks of one-granule slabs
      // from interior pointers and from whatever must take the slow path.
      uint32_t magic;
      SizeClass size_class;  // slab
      bool fresh;            // slab: its uncarved part has never been touched
      uint16_t nonce;        // slab: another one each time that a slab is made
    };
    uint64_t secret;  // slab: all of these, which do not change while it is one (core/mark.h)
  };
  union {
    Heap* owner;                    // slab; constant while it has blocks in use
    support::SegregatedHeap* heap;  // the same in the offload flavour
    size_t bytes;                   // span: usable size, a multiple of the page size
    Granule* older;                 // free dirty run
  };
  union {
    uint64_t remote;    // slab, shared flavour: the batch of blocks freed by other threads (remote/batch.h); atomic
    char* start;        // slab, offload flavour: its first block
    uint64_t freed_ms;  // free dirty run: since when
  };
  union {
    Granule* inbox_next;  // slab, shared flavour: next in the owner's inbox
    uint64_t* bitmap;     // slab, offload flavour: of its free blocks (support/books.h)
  };
  Granule* next;  // in a list of partial slabs, or of free runs of like length
  Granule* previous;
  union {
    // Blocks in use, cut in two so that free() needs one countdown to see all events: used = floor + until.
    //   full slab:   until counts down to the moment when a fair share is free again; then it becomes partial
    //   otherwise:   floor = 0, and until counts down to empty
    //   empty slab:  floor = -1 and until = 1, so that one free too many is an event as well (the sum is of 16 bits)
    struct {
      uint16_t until;
      uint16_t floor;
    };
    uint32_t length;  // span or free run: granules; in its head and its last granule
  };
  uint16_t carved;  // slab: blocks made so far, from its start
  Kind kind;
  union {
    SlabState state;  // slab
    uint8_t back;     // slab tail
    bool dirty;       // free run
  };
};
static_assert(sizeof(Granule) == 64);

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
inline constexpr auto kSlabCapacity = [] {
  std::array<uint16_t, kClasses> blocks{};
  for (SizeClass c = 0; c < kClasses; ++c)
    blocks[c] = static_cast<uint16_t>(slab_granules(c) * kGranule / block_size(c));
  return blocks;
}();
constexpr uint32_t slab_capacity(SizeClass c) { return kSlabCapacity[c]; }
constexpr uint32_t slab_magic(SizeClass c) {
  return slab_granules(c) == 1 ? static_cast<uint32_t>(((uint64_t{1} << 32) + block_size(c) - 1) / block_size(c)) : 0;
}
static_assert(kGranule / kMinAlignment < UINT16_MAX);

// How many of a slab's blocks are in use.
[[gnu::always_inline]] constexpr uint32_t used_of(const Granule* slab) {
  return static_cast<uint16_t>(slab->floor + slab->until);
}
// Says so of a slab that is not full.
constexpr void set_used(Granule* slab, uint32_t used) {
  slab->floor = used == 0 ? UINT16_MAX : 0;
  slab->until = used == 0 ? 1 : static_cast<uint16_t>(used);
}

}  // namespace annex
