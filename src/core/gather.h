// A large span made of pages that lie elsewhere: the pages of free runs are moved to where the span is, 2 MiB at a
// time.
//
// Free runs of many lengths leave holes that no large span fits. Without this the span would touch fresh memory, and as
// much as it touches would be given back for it: a fault for each page and a page table torn down, where moving a whole
// page table takes a microsecond (docs/commitment.md, "What pages cost"). Addresses cost nothing, so the span gets new
// ones.
#pragma once

#include <cstdint>

#include "core/granule.h"

namespace annex {

// With the arena lock held, which it lets go of while it moves pages: a run of so many granules, at least half of it
// dirty and the rest clean, that starts at a multiple of 2 MiB. nullptr where too little is dirty in whole pieces of
// 2 MiB, or nothing can be moved.
Granule* take_gathered(uint32_t granules);

// The same for a span whose first `kept` granules are to be moved to it from where it was: they are clean, and what
// follows is dirty as far as it could be gathered. nullptr where nothing can be moved.
Granule* take_to_move_into(uint32_t kept, uint32_t granules);

}  // namespace annex
