// The support core's books: what its heap keeps about slabs beside the arena's granules, each in pages of its own.
//
//   class map   a byte a granule: 1 + the class of the slab that it belongs to, 0 for whatever is no slab. It is all
//               that free needs to know of a pointer, and changes only when a slab is made or let go, so program
//               threads read it out of their own caches.
//   bitmaps     512 bytes a granule, of which a slab uses a bit for each of its blocks: set where the block is free.
//               Blocks themselves hold no link: the support core never reads or writes them (the segregated layout of
//               SpeedMalloc section 4 and NextGen-Malloc section 3.1.2).
//
// They grow with the arena, before its frontier. Synchronization: a slab's part is written under its heap's lock;
// the map is read by anyone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/granule.h"

namespace annex::support {

inline constexpr size_t kBitmapBytes = kGranule / kMinAlignment / 8;

class Books {
 public:
  // Makes what belongs to the arena's granules before `end` usable; false where the system refuses. Arena lock held.
  bool commit(const Arena& arena, size_t end);

  uint8_t* map() const { return map_; }
  uint64_t* bitmap(size_t granule) const {
    return reinterpret_cast<uint64_t*>(bitmaps_ + (granule - first_) * kBitmapBytes);
  }

 private:
  size_t first_ = 0;  // the arena's first granule after its own metadata
  uint8_t* map_ = nullptr;
  char* bitmaps_ = nullptr;
  size_t map_committed_ = 0;      // bytes, and granules
  size_t bitmaps_committed_ = 0;  // bytes
};

// One for each arena.
extern constinit Books books[kMaxArenas];

// What a byte of the map says.
constexpr size_t mark_of(SizeClass c) { return size_t{c} + 1; }

// For core/arena.h's commit_books.
bool commit(const Arena& arena, size_t end);

// Enters a new slab into the books, its bitmap empty, and notes in its granule where that is.
void enter(Granule* slab);
// The slab is about to be let go.
void strike(Granule* slab);

// The first arena as far as its map reaches, for the fast path of free: alone on its line, which nobody writes. No
// bytes before the first allocation.
struct alignas(64) Mapped {
  char* base;
  size_t bytes;
  const uint8_t* map;
};
extern constinit Mapped mapped;

}  // namespace annex::support
