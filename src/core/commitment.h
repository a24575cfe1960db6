// Balanced commitment: when memory is taken from the system, in which pieces, and when it goes back. The books, and
// what is decided by them; what then happens to memory is in arena.h and purge.h.
//
// Exgen-Malloc names the policy but does not publish it; this one is our reconstruction, chosen by the measurements in
// docs/commitment.md. With, in bytes,
//
//   live      in runs that are slabs or spans          dirty     free and perhaps resident
//   touched   of live, ever written: carved blocks, and spans whole
//   peak      the largest live so far
//
// taking memory:
//   commit step     = clamp(committed / 4, 1 MiB, 64 MiB), at least what is asked for   (address space, not memory);
//                   1 MiB where addresses are scarce: the rest is the program's to map
//   proved to grow  : touched >= 2 MiB and touched >= 3/4 of live, and 3/4 are touched of what slabs took since they
//                   last needed fresh memory
//   filled          the last span of 2 MiB or more that was made of fresh memory, and freed, had been written all over:
//                   none of 16 pages, spread over it, was all zeros then
//   huge pages      once the heap has proved to grow: for the fresh 2 MiB in which slabs are made, and for fresh spans
//                   that fill 7/8 of their granules; for those of n >= 2 MiB also once 2 MiB are touched and the last
//                   one was filled, but only if n <= live (so that what is asked for speculatively is never more than
//                   what is known to be used). None before: a small heap pays 4 KiB at a time.
//   dirty first     a span for which no dirty run is long enough takes dirty pages from elsewhere, by moving them,
//                   where it is of 2 MiB or more (gather.h); else a dirty run of half its length or more with the clean
//                   runs beside it; and only then clean memory alone. A slab takes clean memory where nothing is dirty
//   first slabs     but a heap's first slab of a class rather takes clean memory, as long as less than 2 MiB are dirty
//                   and fresh memory has small pages. It may stay the only one, with a few blocks: then it costs a page
//                   or two, and the dirty run is left to a class that fills it
//
// giving memory back:
//   delay           a dirty run is due when it has been free for ANNEX_PURGE_DELAY. What is due goes back when a thread
//                   gives a run or touches clean memory: 2 MiB at a time, or as much as it gives or takes itself if
//                   that is more, so that what goes back keeps up with what comes, and no call pays for all. With
//                   ANNEX_BACKGROUND=1 in an idle process too (purger.h)
//   growth          before a span of n bytes touches clean memory, the oldest dirty runs go back until
//                   dirty <= max(256 KiB, touched / 8)  or  live + dirty + n <= peak.
//                   So what is kept for reuse can't raise the peak of the resident set by more than an eighth.
//   keepers         threads that do both for the others: in the offload flavour, the support threads while they are
//                   awake. Growth then waits for nobody: what has to go back goes back just after; unless the keeper
//                   is slower, and dirty is twice what it may be
//
// Memory is given back with MADV_DONTNEED, never MADV_FREE: monitors see it go at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/chance.h"
#include "core/granule.h"

namespace annex {

// Changed under the arena lock, read by any thread.
class Gauge {
 public:
  operator size_t() const { return __atomic_load_n(&bytes_, __ATOMIC_RELAXED); }
  void operator=(size_t bytes) { __atomic_store_n(&bytes_, bytes, __ATOMIC_RELAXED); }
  void operator+=(size_t bytes) { *this = bytes_ + bytes; }
  void operator-=(size_t bytes) { *this = bytes_ - bytes; }

 private:
  size_t bytes_ = 0;
};

// Under the arena lock, except `touched`, `dirty` and `beside`.
struct Commitment {
  size_t committed = 0;
  size_t metadata = 0;
  size_t live = 0;
  size_t promised = 0;  // to be live: runs that are being taken at this moment
  size_t spans = 0;     // of live, in spans
  Gauge dirty;
  size_t purged_total = 0;
  size_t huge = 0;
  // When slabs last took memory that had never been used: how much was slabs', and how much of it touched.
  size_t slabs_then = 0;
  size_t touched_then = 0;

  const Granule* fresh_span = nullptr;  // the last of 2 MiB or more, while it is one
  bool filled = false;                  // what is known of the one before

  Granule* oldest = nullptr;  // dirty runs by age
  Granule* newest = nullptr;
  uint32_t keepers = 0;
  bool purger_runs = false;                    // or is about to
  alignas(64) std::atomic<size_t> touched{0};  // bytes of slabs' blocks that were ever made, and spans'
  // What support threads look at all the time is on a line that is seldom written.
  alignas(64) size_t peak = 0;
  std::atomic<bool> growth_left{false};    // to a keeper: the growth rule
  std::atomic<bool> purger_wanted{false};  // and not started yet: read on every slow path of malloc
  std::atomic<size_t> beside{0};  // metadata that is mapped without the lock; neither in metadata nor committed
};
extern constinit Commitment commitment;

// Whether addresses are limited, or what is writable: by RLIMIT_AS or RLIMIT_DATA at the start, or since the system has
// refused memory. Then none are left out for the sake of huge pages, of moving, or of chance. Under the arena lock.
extern constinit bool addresses_are_scarce;
inline bool addresses_abound() { return kByChance && !addresses_are_scarce; }

// A heap has carved fresh blocks out of a slab, or given a slab with carved blocks back.
inline void note_touched(size_t bytes) { commitment.touched.fetch_add(bytes, std::memory_order_relaxed); }
inline void note_untouched(size_t bytes) { commitment.touched.fetch_sub(bytes, std::memory_order_relaxed); }

// One heap's share of `touched`. The others are told when it has changed by a sixteenth of the heap, or a granule, and
// when the heap takes a run, as the arena then decides by it: a line that all threads write would otherwise be written
// each time that one carves a page.
class TouchedBytes {
 public:
  static constexpr uint32_t kUntold = 16;  // of the heap's granules

  // In a heap of so many granules.
  void add(size_t bytes, uint32_t granules) { change(static_cast<ptrdiff_t>(bytes), granules); }
  void subtract(size_t bytes, uint32_t granules) { change(-static_cast<ptrdiff_t>(bytes), granules); }
  void tell() {
    note_touched(static_cast<size_t>(untold_));  // or less, modulo 2^64
    untold_ = 0;
  }

 private:
  void change(ptrdiff_t by, uint32_t granules) {
    untold_ += by;
    const ptrdiff_t most = std::max<ptrdiff_t>(granules / kUntold, 1) * static_cast<ptrdiff_t>(kGranule);
    if (untold_ >= most || untold_ <= -most) tell();
  }

  ptrdiff_t untold_ = 0;
};

inline constexpr size_t kProofOfGrowth = size_t{2} << 20;
inline constexpr size_t kLargestCommitStep = size_t{64} << 20;
inline constexpr size_t kDirtySlack = size_t{2} << 20;  // not worth a purge

// With the arena lock held:
size_t commit_step(size_t committed);
bool slabs_want_huge_pages();
bool first_slabs_want_clean_memory();
void note_fresh_slabs();  // slabs take memory that has never been used
bool span_wants_huge_pages(size_t bytes);
void note_fresh_span(const Granule* span);
// Before its pages are anybody else's; moved: they are elsewhere.
void note_span_gone(const Granule* span, const char* start, bool moved);
// Keeps the list of dirty runs in order of age: a run joins it just after that older one, nullptr being older than all.
void age_insert(Granule* run, Granule* older, uint64_t freed_ms);
void age_remove(Granule* run);
void age_replace(Granule* run, Granule* by);
// The delay's rule. Whether it may find something: what is not worth a look at the clock is none.
bool something_may_be_due();
bool is_due(const Granule* dirty_run, uint64_t now_ms);
// The growth rule, before `bytes` of clean memory are touched by a span: how much of what is dirty goes back, in whole
// pieces of 2 MiB; and whether that may wait for a keeper.
size_t growth_excess(size_t bytes);
bool growth_can_wait();
// A run has been taken: the purger is wanted from some size of the heap on, where the user has asked for it (purger.h).
void want_purger();

}  // namespace annex
