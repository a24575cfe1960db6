// Balanced commitment: when memory is taken from the system, in which pieces, and when it goes back. Decisions alone,
// by the books (books.h) and the options; what then happens to memory is in page_heap.h.
//
// Exgen-Malloc names the policy but does not publish it; this one is our reconstruction, chosen by the measurements in
// docs/commitment.md. With, in bytes,
//
//   live      in runs that are slabs or spans          dirty     free and perhaps resident
//   touched   of live, ever written: carved blocks, and spans whole
//   needed    the largest live of late: of the last ten to twenty ANNEX_PURGE_DELAY
//
// taking memory:
//   commit step     = clamp(committed / 4, 1 MiB, 64 MiB), at least what is asked for   (address space, not memory);
//                   1 MiB where addresses are scarce: the rest is the program's to map
//   proved to grow  : touched >= 2 MiB, and 3/4 are touched of what slabs took since they last needed fresh memory, or
//                   of the last 4 MiB of it; less than 1 MiB says nothing: then as it was found before. And touched >=
//                   3/4 of live; with one thread no more from 4 MiB touched on, with several 2/3 from 16 MiB on
//   filled          the last span of 2 MiB or more, of fresh memory, that was looked at had been written all over: none
//                   of 16 pages, spread over it, was all zeros; or while it is in use, began with a zero
//   huge pages      once the heap has proved to grow: for the fresh 2 MiB in which slabs are made, and for fresh spans
//                   that fill 7/8 of their granules; for those of n >= 2 MiB also once 2 MiB are touched and the last
//                   one was filled, but only if n <= live (so that what is asked for speculatively is never more than
//                   what is known to be used). None before: a small heap pays 4 KiB at a time.
//   dirty first     a span for which no dirty run is long enough takes dirty pages from elsewhere, by moving them,
//                   where it is of 2 MiB or more (gather.cpp); else a dirty run of half its length or more with the
//                   clean runs beside it; and only then clean memory alone. A slab takes clean memory where nothing is
//                   dirty
//   first slabs     but a heap's first slab of a class rather takes clean memory, as long as less than 2 MiB are dirty
//                   and fresh memory has small pages. It may stay the only one, with a few blocks: then it costs a page
//                   or two, and the dirty run is left to a class that fills it
//
// giving memory back:
//   delay           a dirty run is due when it has been free for ANNEX_PURGE_DELAY. What is due goes back when a thread
//                   gives a run or touches clean memory: 2 MiB at a time, or as much as it gives or takes itself if
//                   that is more, so that what goes back keeps up with what comes, and no call pays for all. In a
//                   process with several threads while nobody calls, too (purger.h).
//                   Threads that come by give nothing back while less than 2 MiB are dirty, while there are keepers, or
//                   while another thread is at it. Keepers and the purger do. With a delay of 0 all goes at once
//   growth          before a span of n bytes touches clean memory, the oldest dirty runs go back until
//                   dirty <= max(256 KiB, touched / 8, needed - live - n).
//                   So what is kept for reuse can't raise the peak of the resident set by more than an eighth.
//   keepers         threads that do both for the others: in the offload flavour, the support threads while they are
//                   awake. Growth then waits for nobody: what has to go back goes back just after; unless the keeper
//                   is slower, and dirty is twice what it may be
//
//   exhaustion      where no run is found, all that is dirty goes back, then addresses that hold nothing (find_run.cpp:
//                   find_exhausted); and before malloc fails, what heaps keep (front/reclaiming.h)
//   on request      malloc_trim, annex_purge: all of it, and addresses (PageHeap::trim); pages of slabs in use, too
//                   (core/holes.h)
//   addresses       runs of 32 MiB or more are unmapped rather than purged (kUnmapped); of 1 MiB or more where
//                   addresses are scarce, and by trim
//
// Elsewhere: the records inside of long free runs (addresses.cpp); the hardened build's large blocks while they wait to
// be used again, and its states of free runs (harden/guarded_span.h, live_blocks.h); the pages of sampled blocks.
//
// Memory is given back with MADV_DONTNEED, never MADV_FREE, or unmapped, or made unreadable by a new mapping: monitors
// see it go at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/books.h"

namespace annex::commitment {

inline constexpr size_t kProofOfGrowth = size_t{2} << 20;
inline constexpr size_t kLargestStep = size_t{64} << 20;
inline constexpr size_t kDirtySlack = size_t{2} << 20;  // less is not worth a look at the clock, nor a purge
// From these lengths on the addresses of a run go back with its memory: shorter ones are soon used again, and each may
// be a mapping of its own.
inline constexpr size_t kUnmapped = size_t{32} << 20;
inline constexpr size_t kUnmappedIfScarce = size_t{1} << 20;  // and by trim

// How many bytes to commit at once in an arena of which so many are.
size_t step(const Books& books, size_t committed);

// Before fresh memory is taken, for a slab or a span: sees what slabs have filled of what they took of late.
void look_at_growth(Books* books, bool for_slab);
bool slabs_want_huge_pages(const Books& books);
bool span_wants_huge_pages(const Books& books, size_t bytes);
bool first_slabs_want_clean_memory(const Books& books);

// Whether ANNEX_MAX_HEAP leaves room for so many bytes more, beside what other threads are about to take.
bool limit_allows(const Books& books, size_t bytes);

// What was needed longer than two windows ago is forgotten; a window is so many ANNEX_PURGE_DELAY.
inline constexpr uint64_t kWindow = 10;
void note_time(Books* books, uint64_t now_ms);

// The delay's rule. Whether it may find something: what is not worth a look at the clock is none.
bool something_may_be_due(const Books& books);
bool is_due(const FreeRun* dirty_run, uint64_t now_ms);
// The growth rule, before `bytes` of clean memory are touched by a span: how much of what is dirty goes back, in whole
// pieces of 2 MiB; and whether that may wait for a keeper.
size_t growth_excess(const Books& books, size_t bytes);
bool growth_can_wait(const Books& books);
// Whether the purger is wanted: from some size of the heap on, in a process that has threads anyhow, or where the user
// has asked for it (purger.h).
bool purger_is_useful(const Books& books);

}  // namespace annex::commitment
