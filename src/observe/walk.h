// A walk over everything in the arenas, for annex_heap_walk and the statistics.
#pragma once

#include "annex/annex.h"
#include "pages/locked.h"

namespace annex::observe {

// Calls visit for each slab, span and free run in order of address within each arena, with the page heap's lock held,
// until it returns non-zero; returns that value or 0. What other threads do to their slabs meanwhile may or may not be
// seen.
int walk(const Locked&, int (*visit)(const annex_region* region, void* context), void* context);

}  // namespace annex::observe
