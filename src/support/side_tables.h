// Side tables of the arenas' granules: what the support core's heap keeps about slabs, each in pages of its own.
//
//   class map   a word for each granule: a tag, for the size class of the slab that the granule belongs to; an end,
//               behind the last block in it that a program thread has ever been given; and a random part, for its marks
//               (core/mark.h). 0 for whatever is no slab. It is all that free needs to know of a pointer. It changes
//               only when a slab is made, first used up to there, or given back, so program threads mostly find it in
//               their own caches.
//   bitmaps     512 bytes a granule, of which a slab uses a bit for each of its blocks: set where the block is
//               free. Blocks themselves hold no link: the support core never reads or writes them (the segregated
//               layout of SpeedMalloc section 4 and NextGen-Malloc section 3.1.2).
//
// They grow with the arena, ahead of its frontier. Synchronization: a slab's part is written under its heap's lock; the
// end by the thread to which its blocks are given, one at a time; any thread reads the map.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "pages/arena.h"
#include "support/batch.h"

namespace annex::support {

inline constexpr size_t kBitmapBytes = kGranule / kMinAlignment / 8;

class SideTables {
 public:
  // Makes what belongs to the arena's granules before `end` usable. The page heap's lock is held.
  os::MapResult commit(const Arena& arena, size_t end);

  uint64_t* map() const { return map_; }
  uint64_t* bitmap(size_t granule) const { return reinterpret_cast<uint64_t*>(bitmaps_ + granule * kBitmapBytes); }

 private:
  static os::MapResult grow(void* table, size_t* committed, size_t wanted);

  uint64_t* map_ = nullptr;
  char* bitmaps_ = nullptr;
  size_t map_committed_ = 0;  // bytes
  size_t bitmaps_committed_ = 0;

  friend struct annex::Layout;
};

// One for each arena.
extern constinit SideTables side_tables[kMaxArenas];

// A word of the map: end | tag << 16 | random << 32. Each block that a program thread was given starts before the end,
// an offset in the granule. The tag is the distance of a class's magazine from the first one (support/magazine.h), so
// that free need not multiply. All but the end is the key of the slab's marks.
inline constexpr uint32_t kTagStep = 64;
constexpr uint32_t tag_of(SizeClass c) { return (uint32_t{c} + 1) * kTagStep; }
constexpr SizeClass class_of_tag(uint32_t tag) { return static_cast<SizeClass>(tag / kTagStep - 1); }
// For a request of up to kTableMax bytes: the tag, which is all that malloc needs to know of its class.
inline constexpr auto kTagOf16 = [] {
  std::array<uint16_t, kTableMax / 16 + 1> tags{};
  for (size_t i = 0; i < tags.size(); ++i) tags[i] = static_cast<uint16_t>(tag_of(class_of_tiny(i * 16)));
  return tags;
}();
constexpr uint32_t tag_of_tiny(size_t bytes) { return kTagOf16[(bytes + 15) / 16]; }
constexpr uint32_t end_in(uint64_t word) { return static_cast<uint16_t>(word); }
// Of a slab with holes (core/holes.h) the end is 0, so that no free takes the fast way, and this bit is set.
inline constexpr uint64_t kHasHoles = uint64_t{1} << 32;
// The key where there are no holes; and in any case.
constexpr uint64_t key_in(uint64_t word) { return word >> 16; }
constexpr uint64_t key_beside_holes(uint64_t word) { return key_in(word & ~kHasHoles); }
constexpr uint32_t tag_in(uint64_t word) { return static_cast<uint16_t>(word >> 16); }
static_assert(tag_of(kClasses) <= UINT16_MAX && kGranule - kMinAlignment + 1 <= UINT16_MAX);

// ceil(2^32 / block size) for slabs of one granule, 0 for longer ones: an offset below 64 KiB is a multiple of the
// block size exactly where uint32(offset * magic) < magic, and then offset * magic >> 32 is the block's number.
inline constexpr auto kSlabMagic = [] {
  std::array<uint32_t, kClasses> magics{};
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (slab_granules(c) == 1) magics[c] = static_cast<uint32_t>(((uint64_t{1} << 32) - 1) / block_size(c) + 1);
  }
  return magics;
}();
constexpr uint32_t slab_magic(SizeClass c) { return kSlabMagic[c]; }

// The word of an address in some arena, as far as its map reaches.
uint64_t map_word(const void* address);

// Spreads a part out (batch.h) for a program thread, and raises the end of its slab. Where that was necessary, there
// are blocks among these that no thread had before; then all are marked as free, as they are in a magazine at first.
// (Other blocks were marked when they were freed.) Nobody else may give out blocks of their heap meanwhile, and new
// blocks must be given out in order of address.
uint32_t give_out(const Batch& part, SizeClass c, void** out);

// For pages/arena.h's commit_side_tables.
os::MapResult commit(const Arena& arena, size_t end);
// For purge_side_tables: the bitmaps of free runs, in which nothing is said.
void purge_bitmaps(const Locked& lock);

// Enters a new slab into the tables, its bitmap empty, and notes in its granule where that is.
void register_slab(Slab* slab);
// The slab is about to be let go.
void unregister_slab(Slab* slab);
// The slab has holes from now on; and has none any more, and all its blocks that are not in use are marked as free.
void note_holes(Slab* slab);
void note_no_holes(Slab* slab);
// Marks a free block of the slab.
void mark_free_in(const Slab* slab, void* block);

// For the fast paths: the first arena as far as its map reaches, and the largest request that they serve. Alone on its
// cache line, which is seldom written. All 0 before the first allocation.
struct alignas(64) Mapped {
  char* base;
  size_t bytes;
  const uint64_t* map;
  size_t largest_request;
};
extern constinit Mapped mapped [[gnu::visibility("hidden")]];

}  // namespace annex::support
