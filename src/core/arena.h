// Arenas: ranges of addresses, cut into granules, and their free runs.
//
// An arena is room to grow in (os/pages.h), 1 TiB or what ANNEX_RESERVE says, of which just the part is mapped that has
// been needed: limits on address space, locked memory and core files see a heap as large as it is. Where another has
// mapped something in the way, or the room is used up, a further arena is begun. Blocks of the first arena are found by
// arithmetic alone (`primary`); those of the others take a short search on the slow path of free.
//
//   [ metadata: one Granule for each granule, mapped before the frontier gets there | not mapped ... ]
//   [ granules ................................................ frontier | committed | not mapped ... ]
//
// The metadata lies in the 2 GiB below the first granule; in the hardened build at a place of its own, by chance.
//
// A free run is dirty, clean or unmapped; such neighbours are not joined, so that each byte's state stays known. Which
// run is taken is in runs.h, the policy of growing and giving back is in commitment.h.
//
// Synchronization: the arena lock, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/arena_lock.h"
#include "core/chance.h"
#include "core/granule.h"
#include "core/run_bins.h"
#include "os/pages.h"

namespace annex {

// The first arena, for those who free: every free reads it. `granules` grows, seldom (kMetadataStep), under the arena
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
  bool begin(size_t bytes);
  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - start_) < bytes_;
  }
  bool contains(const Granule* granule) const {
    return reinterpret_cast<uintptr_t>(granule) - reinterpret_cast<uintptr_t>(metadata_) <
           bytes_ / kGranule * sizeof(Granule);
  }
  Granule* metadata() const { return metadata_; }
  Granule* granule_at(const void* address) const {
    return metadata_ + (static_cast<size_t>(static_cast<const char*>(address) - start_) >> kGranuleShift);
  }
  // The same, or nullptr where no metadata has been needed yet, so that the address can't be in use.
  Granule* granule_checked(const void* address) const;
  char* start_of(const Granule* granule) const {
    return start_ + (static_cast<size_t>(granule - metadata_) << kGranuleShift);
  }
  char* start() const { return start_; }
  size_t bytes() const { return bytes_; }
  Granule* first() const { return metadata_; }
  Granule* frontier() const { return metadata_ + frontier_; }
  // Whether addresses are left for so many granules more. What can't be had all the same is memory.
  bool has_room_for(uint32_t granules) const { return !blocked_ && size_t{frontier_} + granules <= bytes_ / kGranule; }

  // The rest is called with the lock held. A run that is taken has lost its kind; whoever takes it gives it a new one
  // before the lock is let go. nullptr where there is none.
  Granule* take_dirty(uint32_t granules);
  Granule* take_clean(uint32_t granules);
  Granule* take_frontier(uint32_t granules, bool huge_pages);
  void put_dirty(Granule* head, uint32_t granules, uint64_t now_ms);
  Granule* put_clean(Granule* head, uint32_t granules) {  // with its neighbours
    return put(head, granules, FreeState::kClean);
  }
  // An unmapped run, mapped again; nullptr also where that is refused.
  Granule* take_unmapped(uint32_t granules);
  // A run, of which so many bytes have just been unmapped and the rest was before, is free.
  Granule* put_unmapped(Granule* run, uint32_t granules, size_t bytes);
  // Clean runs are unmapped, the longest first, until so many bytes have been. The bytes.
  size_t unmap_clean(size_t bytes);
  // What lies behind a span's usable size in its last granules: given back; and mapped again, false where that is
  // refused.
  static size_t tail_bytes(const Granule* span) { return size_t{span->length} * kGranule - span->span.bytes; }
  bool unmap_tail(Granule* span);
  bool map_tail(Granule* span);
  // So many granules out of a free run, from an offset on; what is before and behind stays as it was, and as old.
  void take_part(Granule* run, uint32_t offset, uint32_t granules);
  // A dirty run, shorter than `granules`, with as much of its clean neighbours as is missing: whether that is enough,
  // and if so, the run taken.
  bool can_join(Granule* dirty, uint32_t granules) const;
  Granule* take_joined(Granule* dirty, uint32_t granules);
  // Takes the granules from `end` on, if they are free; whether they are clean.
  bool take_following(Granule* end, uint32_t granules, bool huge_pages, bool* clean);
  // A run that is clean gets huge pages when it is touched.
  void advise_huge(Granule* fresh, uint32_t granules);
  // The pages of a run, of this arena or another, have been moved to one of this arena's, and with them the advice.
  void note_moved(const Granule* from, const Granule* to, uint32_t granules);
  // Takes the end of a dirty run out, to be given back and then put_clean.
  Granule* take_for_purge(Granule* run, uint32_t granules);
  // Gives the memory back that holds the metadata inside the free run of which this is the head.
  void purge_metadata(Granule* run);
  // Granules; of a run that is no mere part of one.
  static uint32_t length_of(const Granule* run);
  // Gives back what nobody uses: the metadata inside of long free runs, and the addresses of long clean runs and at the
  // end.
  void trim();

 private:
  bool commit_to(uint32_t frontier);
  bool map(void* start, size_t bytes);
  bool succeeded(os::MapResult result);
  bool commit_metadata(uint32_t frontier);
  Granule* unmap_clean(Granule* run);
  bool uncommit(uint32_t from);
  bool give_addresses(char* start, size_t bytes);
  bool note_huge_up_to(uint32_t end);
  bool is_huge(size_t granule) const;
  void set_huge(size_t from, size_t to, bool huge);
  void forget_huge(const char* start, size_t bytes);
  Granule* run_before(Granule* head, FreeState state) const;
  Granule* run_after(Granule* head, uint32_t granules, FreeState state) const;
  Granule* run_ending_at_frontier() const;
  void take_out(Granule* run);
  void take_front(Granule* run, uint32_t granules);
  Granule* take_back(Granule* run, uint32_t granules);
  Granule* put(Granule* head, uint32_t granules, FreeState state);
  RunBins& bins(FreeState state) { return bins_[static_cast<uint8_t>(state)]; }

  char* start_ = nullptr;
  size_t bytes_ = 0;
  Granule* metadata_ = nullptr;
  // Read without the lock until here, so what is written under it is on other lines.
  alignas(64) uint32_t frontier_ = 0;  // first granule never used
  uint32_t committed_ = 0;             // granules readable and writable: frontier_ <= committed_
  size_t metadata_committed_ = 0;      // bytes; read without the lock
  bool blocked_ = false;               // something else is mapped where it would grow
  uint32_t huge_noted_ = 0;            // so many granules have bits in huge_
  uint64_t* huge_ = nullptr;           // a bit for each granule that is mapped with huge pages asked for
  RunBins bins_[3];                    // by state
};

// Whether a run is free of which this is the head or the last granule. One beside it may be a span that another thread
// frees at this moment, without the lock (harden/guarded_span.h): it isn't free before and after.
inline bool is_free(const Granule* end) {
  return std::atomic_ref<Kind>(const_cast<Kind&>(end->kind)).load(std::memory_order_relaxed) == Kind::kFree;
}

inline bool is_dirty(const Granule* free_run) { return free_run->state_of_free == FreeState::kDirty; }

// A run that is taken is in nobody's hands while the lock is let go.
inline void set_aside(Granule* run, uint32_t granules) {
  run->kind = run[granules - 1].kind = Kind::kPurging;
  run->length = run[granules - 1].length = granules;
}

// Makes usable what the flavour keeps for each granule beside its metadata, for the arena's granules before `end`.
// nullptr in a flavour that keeps nothing; one that does says so before the first arena is made. Called with the lock
// held, before the frontier gets there.
using CommitSideTables = os::MapResult(const Arena& arena, size_t end);
extern constinit CommitSideTables* commit_side_tables;

inline constexpr size_t kMaxArenas = 64;
extern constinit Arena arenas[kMaxArenas];
extern constinit uint32_t arena_count;  // grows under the lock; read with acquire

// Memory for what else the library keeps in its books, wherever there is room: as os::map() has it, and counted. Takes
// no lock.
void* map_metadata(size_t bytes);

// The arena and the metadata of an address; nullptr for an address in no arena.
Arena* arena_of(const void* address);
Granule* granule_of(const void* address);
// The arena of a granule.
Arena* arena_of(const Granule* granule);
// The address of a granule.
char* start_of(const Granule* granule);

}  // namespace annex
