// Arenas: ranges of addresses, cut into granules.
//
// An arena is room to grow in (os/pages.h), 1 TiB or what ANNEX_RESERVE says, of which just the part is mapped that has
// been needed: limits on address space, locked memory and core files see a heap as large as it is. Where another has
// mapped something in the way, or the room is used up, a further arena is begun. Blocks of the first arena are found by
// arithmetic alone (`primary`); those of the others take a short search on the slow path of free.
//
//   [ metadata: one Granule for each granule, mapped before the frontier gets there | not mapped ... ]
//   [ granules ................................................ frontier | committed | not mapped ... ]
//
// The metadata of the first arena lies in the 2 GiB below its first granule, that of the others directly below theirs;
// in the hardened build at a place of its own, by chance.
//
// What of the granules is free is not an arena's to know (free_runs.h), nor when it grows (page_heap.h).
//
// Synchronization: the page heap's lock guards what changes: the functions that take the books, and those marked so.
// The others may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/pages.h"
#include "pages/books.h"
#include "pages/chance.h"
#include "pages/granule.h"

namespace annex {

class Locked;  // locked.h

// The first arena, for those who free: every free reads it. `granules` grows, seldom (kMetadataStep), under the
// lock; the rest is written once, before there is a block.
struct alignas(64) Primary {
  uintptr_t start;    // the first granule's address
  size_t granules;    // whose metadata can be read; 0 until the library is set up
  Granule* metadata;  // the first granule's
};
inline constexpr uintptr_t kNowhere = uintptr_t{1} << 63;  // no address of a program is that high
extern constinit Primary primary [[gnu::visibility("hidden")]];

// How far below the first granule its metadata is: a constant, so that the fast paths load none. Not quite the 2 GiB
// that 1 TiB needs: slabs begin at multiples of 16 pages, and in a TLB of 16 sets the first pages of them all compete
// for one set, in which the metadata of the first 2 MiB would be too. So it begins eight pages further on. (cfrac,
// simulated: the allocator waited 3.3 million cycles for translations, then 0.06 million, of 70 million in all.)
// AArch64 may have pages of 64 KiB.
#if defined(__x86_64__)
inline constexpr size_t kMetadataFurtherOn = 8 * 4096;
#else
inline constexpr size_t kMetadataFurtherOn = 65536;
#endif
inline constexpr size_t kMetadataBelow = (size_t{2} << 30) - kMetadataFurtherOn;
inline constexpr size_t kMostOfPrimary = kMetadataBelow / sizeof(Granule) * kGranule;  // bytes

// The metadata of a granule of the arena that begins at `start`, the first one.
[[gnu::always_inline]] inline Granule* primary_granule(uintptr_t start, size_t index) {
  return (kByChance ? primary.metadata : reinterpret_cast<Granule*>(start - kMetadataBelow)) + index;
}
[[gnu::always_inline]] inline size_t primary_granules() { return __atomic_load_n(&primary.granules, __ATOMIC_RELAXED); }

// Whether an address is so far in the first arena that metadata stands for it.
[[gnu::always_inline]] inline bool in_primary(const void* address) {
  return (reinterpret_cast<uintptr_t>(address) - primary.start) >> kGranuleShift < primary_granules();
}

class Arena {
 public:
  // Begins an arena in room for so many bytes (a multiple of kHugePage). False where the system refuses.
  bool begin(size_t bytes, Books* books);

  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - start_) < bytes_;
  }
  Granule* granule_at(const void* address) const {
    return metadata_ + (static_cast<size_t>(static_cast<const char*>(address) - start_) >> kGranuleShift);
  }
  // The same, or nullptr where no metadata has been needed yet, so that the address can't be in use.
  Granule* granule_checked(const void* address) const;
  size_t index_of(const Granule* granule) const { return static_cast<size_t>(granule - metadata_); }
  char* start_of(const Granule* granule) const { return start_ + (index_of(granule) << kGranuleShift); }
  char* start() const { return start_; }
  size_t bytes() const { return bytes_; }
  uint8_t number() const;

  // With the lock held:
  Granule* first() const { return metadata_; }
  // The first granule of the 2 MiB in which one lies, and the last one's next (or the frontier).
  Granule* huge_begin(const Granule* granule) const {
    return first() + round_down<size_t>(index_of(granule), kGranulesPerHugePage);
  }
  Granule* huge_end(const Granule* granule) const {
    return std::min(huge_begin(granule) + kGranulesPerHugePage, frontier());
  }
  Granule* frontier() const { return metadata_ + frontier_; }  // the first granule never used
  // Whether addresses are left for so many granules more. What can't be had all the same is memory.
  bool has_room_for(uint32_t granules) const { return !blocked_ && size_t{frontier_} + granules <= bytes_ / kGranule; }
  // Makes the granules before that one usable, and their metadata; they read as zero. False where the system refuses.
  bool advance(uint32_t frontier, Books* books);
  // The granules from that one on, all free, count as never used; `unmapped`: they have been given back, and what is
  // committed behind them is now. False where the system refuses.
  bool retreat(uint32_t frontier, bool unmapped, Books* books);
  // Gives back what is committed from the frontier on. False where the system refuses.
  bool uncommit_rest(Books* books);
  uint32_t committed_beyond_frontier() const { return committed_ - frontier_; }

  // Maps addresses within the arena, or gives them back. False where the system refuses.
  bool map(char* start, size_t bytes, Books* books);
  bool unmap(char* start, size_t bytes, Books* books);
  // So many bytes from there on are no longer mapped: os::unmap_at() has been called without the lock.
  void note_unmapped(const char* start, size_t bytes, Books* books);

  // A run that is clean gets huge pages when it is touched.
  void advise_huge(const Granule* fresh, uint32_t granules, Books* books);
  // Asks for huge pages no more in the 2 MiB in which a granule lies. False where they weren't asked for, or that has
  // been done so often that it is enough: each may be a mapping of its own.
  bool end_huge(const Granule* granule, Books* books);
  // The pages of a run, of this arena or another, have been moved to one of this arena's, and with them the advice.
  void note_moved(const Granule* from, const Granule* to, uint32_t granules, Books* books);

 private:
  bool commit_to(uint32_t frontier, Books* books);
  bool commit_metadata(uint32_t frontier, Books* books);
  bool succeeded(os::MapResult result);
  bool note_huge_up_to(uint32_t end, Books* books);
  bool is_huge(size_t granule) const;
  void set_huge_ended(size_t first, bool ended, Books* books);
  void set_huge(size_t from, size_t to, bool huge, Books* books);

  char* start_ = nullptr;
  size_t bytes_ = 0;
  Granule* metadata_ = nullptr;
  // Read without the lock until here, so what is written under it is on other lines.
  alignas(64) uint32_t frontier_ = 0;
  uint32_t committed_ = 0;          // granules readable and writable: frontier_ <= committed_
  size_t metadata_committed_ = 0;   // bytes; read without the lock
  bool blocked_ = false;            // something else is mapped where it would grow
  uint32_t huge_noted_ = 0;         // so many granules have bits in huge_
  uint64_t* huge_ = nullptr;        // a bit for each granule that is mapped with huge pages asked for
  uint64_t* huge_ended_ = nullptr;  // and one for each 2 MiB for which they have been, and are not any more

  friend struct Layout;
};

// Makes usable what the flavour keeps for each granule beside its metadata, for the arena's granules before `end`.
// nullptr in a flavour that keeps nothing; one that does says so before the first arena is made. Called with the lock
// held, before the frontier gets there.
using CommitSideTables = os::MapResult(const Arena& arena, size_t end);
extern constinit CommitSideTables* commit_side_tables;
// Gives back what is kept there for free runs; nullptr where that is not worth it.
using PurgeSideTables = void(const Locked& lock);
extern constinit PurgeSideTables* purge_side_tables;

inline constexpr size_t kMaxArenas = 64;
extern constinit Arena arenas[kMaxArenas];
extern constinit uint32_t arena_count;  // grows under the lock; read with acquire
// One more, in room for so many bytes; nullptr where the system refuses, or there are too many.
Arena* add_arena(size_t bytes, Books* books);

// The arena and the record of an address; nullptr for an address in no arena.
Arena* arena_of(const void* address);
Granule* granule_of(const void* address);
// Of a run's head:
inline Arena& arena_of_run(const Granule* head) { return arenas[head->arena]; }
inline char* start_of(const Granule* head) { return arena_of_run(head).start_of(head); }

}  // namespace annex
