// Spans: requests above kMaxSmall, each a run of its own. A span's usable size is rounded up to pages, its address
// range to granules: addresses cost nothing, and only the pages that are written cost memory.
//
// Synchronization: a span belongs to whoever holds its block; the page heap guards the rest.
#pragma once

#include <cstddef>

#include "pages/granule.h"

namespace annex {

// `alignment` is a power of two; up to kGranule costs nothing. nullptr where memory is exhausted. *zero tells whether
// the block reads as zero.
void* allocate_span(size_t bytes, size_t alignment, bool* zero);
void free_span(Span* span);

// Makes the span's usable size at least `bytes` (> kMaxSmall) without moving it: within its range, into what follows it
// if that is free, or by giving the end back.
bool resize_span_in_place(Span* span, size_t bytes);

// A longer span to which the content has been moved by moving its pages, where that is cheaper than copying; the span
// that it was in is freed. nullptr, with nothing changed: the caller copies, and frees.
void* move_span(Span* from, size_t bytes);

}  // namespace annex
