// Runs for slabs and spans: out of which arena, of which pages, and what is given back for it.
//
// A run is taken from, in this order: dirty runs (no page fault, no growth), for a span dirty runs put together
// (gather.h, or with the clean ones beside them), clean runs, an arena's frontier, another arena.
//
// Synchronization: the functions below take the arena lock; but for a slab of one granule, whoever finds it held uses
// the transfer cache instead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"

namespace annex {

// Sets the library up (reads the environment, reserves the first arena) if that has not been done. False where not
// even a small arena could be reserved.
bool set_up();

// Take a run for a slab of the class, or for a span of `bytes` usable bytes and no more than `granules`, its address a
// multiple of `alignment` granules; nullptr where memory or address space is exhausted or ANNEX_MAX_HEAP is reached.
// *clean tells whether it reads as zero. Whatever a walk reads of a run (kind, length, class, bytes, no block in use)
// is true when the lock is let go; the rest of its metadata is the caller's to write, a slab's key of the word by
// chance that is there.
//
// A slab's: dirty memory first, as it costs nothing; unless the slab is the `first` of its class in a heap. That one
// may stay the only one, with a few blocks: of clean memory it takes a page or two, and the dirty run is left to who
// fills it. Where a clean run of one granule was taken, up to `more` others are taken with it, which cost no memory
// before they are touched: *spares, linked by `next`. They look the same, and are given back by give_spares().
Granule* take_slab_run(SizeClass c, bool* clean, bool first = false, uint32_t more = 0, Granule** spares = nullptr);
Granule* take_span_run(uint32_t granules, uint32_t alignment, size_t bytes, bool* clean);
// In the hardened build (core/chance.h) span.before says how many granules before it, and then one behind it too, are
// nobody's to use as long as there is the span.

// The same for a span that takes the place of one of `kept` granules, whose pages are to be moved to its start. nullptr
// where that can't be done, too.
Granule* take_span_run_to_move_into(uint32_t kept, uint32_t granules, size_t bytes);

// Take a run back, for which the caller holds nothing any more; it becomes dirty. A span's is `clean` where it reads as
// zero and holds no memory: its pages may have been moved, all of them, to another run's start.
void give_slab_run(Granule* head);
void give_spares(Granule* spares);
void give_span_run(Granule* head, bool clean, const Granule* moved_to = nullptr);

// For who frees without giving a run: what is due goes back, as for a run of so many bytes, unless the arena is busy.
void give_back_some(size_t bytes);

// Gives all that is free back to the system; returns the bytes.
size_t purge_all();

// Makes a span's usable size `bytes`, in place: lengthens it where what follows is free, or shortens it.
bool resize_span(Granule* head, size_t bytes);

}  // namespace annex
