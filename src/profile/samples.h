// Samples of a heap profile: which blocks they are, who allocated them, and what becomes of them. Which blocks become
// samples is decided where they are handed out (core/sample_points.h, front/profiled.h).
//
// That a small sampled block has been freed is found when its slab's free blocks are about to be handed out again, or
// when the profile is looked at: free() itself knows nothing of samples. So its lifetime may read longer than it was.
//
// Synchronization: any thread; profile::lock is taken inside (tables.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "pages/granule.h"

namespace annex::profile {

// Whether a block of a slab is free, of which that is not known: the front end's answer.
using IsFree = bool(const Slab* slab, const void* block);

// Begins a profile, with so many bytes between two samples in the mean; or goes on with another rate. Loads the
// unwinder, which allocates. False where there is no unwinder, or memory is exhausted.
bool start(uint64_t rate, IsFree* is_free);
// No more samples are taken. Those that there are stay, and are still seen to be freed.
void stop();

// The calling thread has been handed a block that is a sample, of the slab or span of `head`, as one of so many bytes
// of which it asked for so many, under that set of labels. Takes the call stack: no lock may be held; or, where the
// unwinder itself is the caller, writes that alone.
void add(Granule* head, const void* block, size_t asked, size_t size, uint32_t labels, const void* caller);

// Lets go of those samples that are free by now.
void end_freed();

}  // namespace annex::profile
