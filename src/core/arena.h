// Arenas: ranges of addresses, cut into granules, and their free runs.
//
// One arena is reserved at the start, as large as ANNEX_RESERVE says (1 TiB: addresses are free). Where that is
// refused, or under a limit on address space, smaller ones are reserved and chained. Blocks of the first arena are
// found by arithmetic alone (`primary`); those of the others take a short search on the slow path of free.
//
//   arena = [ metadata: one Granule for each granule of the arena ][ granules ... frontier | never used ... ]
//
// A free run is dirty or clean; such neighbours are not joined, so that each byte's state stays known. Which run is
// taken is in runs.h, the policy of growing and giving back is in commitment.h.
//
// Synchronization: the arena lock, but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/chance.h"
#include "core/granule.h"
#include "core/run_bins.h"
#include "os/lock.h"

namespace annex {

// The first arena, for those who free. Every free reads it, so nothing that is written often is on its line.
struct alignas(64) Primary {
  // For the fast paths: where kReach bytes begin whose metadata can be read, in use or not, so that they test a pointer
  // against a constant. kNowhere where the arena is so small that this would be much beside it. Written before there is
  // a second thread: the library sets itself up when it is loaded, if not before.
  uintptr_t reach;
  char* base;
  size_t bytes;  // whose metadata is in use; 0 until the library is set up
};
inline constexpr size_t kReach = size_t{1} << 40;
inline constexpr size_t kLeastWithReach = size_t{4} << 30;  // bytes of an arena; the metadata takes half as much
inline constexpr uintptr_t kNowhere = uintptr_t{1} << 63;   // no address of a program is that high
extern constinit Primary primary [[gnu::visibility("hidden")]];

extern constinit os::Lock arena_lock;

// Whether addresses may be left out, and runs lie wherever chance has it.
inline bool addresses_abound() { return kByChance && primary.reach != kNowhere; }

class Arena {
 public:
  // Reserves `bytes` (a multiple of kHugePage), and for the first arena the metadata of kReach bytes where it has the
  // size for that. False where the system refuses.
  bool reserve(size_t bytes);
  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - base_) < bytes_;
  }
  Granule* metadata() const { return reinterpret_cast<Granule*>(base_); }
  Granule* granule_at(const void* address) const {
    return metadata() + (static_cast<size_t>(static_cast<const char*>(address) - base_) >> kGranuleShift);
  }
  // The same, or nullptr where no metadata has been needed yet, so that the address can't be in use.
  Granule* granule_checked(const void* address) const;
  char* start_of(const Granule* granule) const {
    return base_ + (static_cast<size_t>(granule - metadata()) << kGranuleShift);
  }
  char* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  Granule* first() const { return metadata() + first_; }
  Granule* frontier() const { return metadata() + frontier_; }

  // The rest is called with the lock held. A run that is taken has lost its kind; whoever takes it gives it a new one
  // before the lock is let go. nullptr where there is none.
  Granule* take_dirty(uint32_t granules);
  Granule* take_clean(uint32_t granules);
  Granule* take_frontier(uint32_t granules, bool huge_pages);
  void put_dirty(Granule* head, uint32_t granules, uint64_t now_ms);
  void put_clean(Granule* head, uint32_t granules) { put(head, granules, false); }
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
  // Takes the end of a dirty run out, to be given back and then put_clean.
  Granule* take_for_purge(Granule* run, uint32_t granules);

 private:
  static constexpr size_t metadata_bytes(size_t bytes) {
    const size_t needed = bytes / kGranule * sizeof(Granule);
    return (needed + kGranule - 1) & ~(kGranule - 1);
  }
  bool commit_to(uint32_t frontier);
  Granule* run_before(Granule* head, bool dirty) const;
  Granule* run_after(Granule* head, uint32_t granules, bool dirty) const;
  void take_out(Granule* run);
  void take_front(Granule* run, uint32_t granules);
  Granule* take_back(Granule* run, uint32_t granules);
  Granule* put(Granule* head, uint32_t granules, bool dirty);

  char* base_ = nullptr;
  size_t bytes_ = 0;
  size_t metadata_ = 0;  // bytes
  uint32_t first_ = 0;   // granule after the metadata
  // Read without the lock until here, so what is written under it is on other lines.
  alignas(64) uint32_t frontier_ = 0;  // first granule never used
  uint32_t committed_ = 0;             // granules readable and writable: frontier_ <= committed_
  size_t metadata_committed_ = 0;      // bytes
  RunBins dirty_;
  RunBins clean_;
};

// A run that is taken is in nobody's hands while the lock is let go.
inline void set_aside(Granule* run, uint32_t granules) {
  run->kind = run[granules - 1].kind = Kind::kPurging;
  run->length = run[granules - 1].length = granules;
}

// Makes usable what the flavour keeps for each granule beside its metadata, for the arena's granules before `end`;
// false where the system refuses. nullptr in a flavour that keeps nothing; one that does says so before the first arena
// is made. Called with the lock held, before the frontier gets there.
using CommitSideTables = bool(const Arena& arena, size_t end);
extern constinit CommitSideTables* commit_side_tables;

inline constexpr size_t kMaxArenas = 64;
extern constinit Arena arenas[kMaxArenas];
extern constinit uint32_t arena_count;  // grows under the lock; read with acquire

// The arena and the metadata of an address; nullptr for an address in no arena.
Arena* arena_of(const void* address);
Granule* granule_of(const void* address);
// The address of a granule.
char* start_of(const Granule* granule);

}  // namespace annex
