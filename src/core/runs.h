// Runs for slabs and spans: out of which arena, of which pages, and what is given back for it.
//
// A run is taken from, in this order: dirty runs (no page fault, no growth), for a span dirty runs put together
// (gather.h, or with the clean ones beside them), clean runs, an arena's frontier, another arena.
//
// Synchronization: the functions below take the arena lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"

namespace annex {

// Sets the library up (reads the environment, reserves the first arena) if that has not been done. False where not
// even a small arena could be reserved.
bool set_up();

// What a run is taken for.
enum class Purpose : uint8_t { kSlab, kSpan };

// Take a run for a slab of the class, or for a span of `bytes` usable bytes and no more than `granules`, its address a
// multiple of `alignment` granules; nullptr where memory or address space is exhausted or ANNEX_MAX_HEAP is reached.
// *clean tells whether it reads as zero. Whatever a walk reads of a run (kind, length, class, bytes, no block in use)
// is true when the lock is let go; the rest of its metadata is the caller's to write, a slab's key of the word by
// chance that is there.
Granule* take_slab_run(SizeClass c, bool* clean);
Granule* take_span_run(uint32_t granules, uint32_t alignment, size_t bytes, bool* clean);

// The same for a span that takes the place of one of `kept` granules, whose pages are to be moved to its start. nullptr
// where that can't be done, too.
Granule* take_span_run_to_move_into(uint32_t kept, uint32_t granules, size_t bytes);

// Takes a run back, for which the caller holds nothing any more. `clean`: it reads as zero and holds no memory (its
// pages have been moved away); else it becomes dirty.
void give_run(Granule* head, uint32_t granules, Purpose purpose, bool clean);

// Makes a span's usable size `bytes`, in place: lengthens it where what follows is free, or shortens it.
bool resize_span(Granule* head, size_t bytes);

}  // namespace annex
