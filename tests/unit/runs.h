// Runs as tests take and give them, and what a test of the page heap does that nobody else may.
#pragma once

#include "core/slab_record.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex {

struct PageHeapTest {
  static FreeRuns& free_runs(const Locked&) { return page_heap.free_; }
  static void before_growth(size_t bytes) {
    Locked lock;
    page_heap.before_growth(lock, bytes);
  }
  static void purge_due(uint64_t now_ms, size_t bytes) {
    Locked lock;
    page_heap.purge_due(lock, now_ms, bytes);
  }
  static bool unmap_tail(Span* span) {
    const Locked lock;
    return page_heap.unmap_tail(span);
  }
};

namespace test {

// `bytes`: all of its granules, unless something else is said. *clean: whether it reads as zero.
inline Span* take_span(uint32_t granules, bool* clean = nullptr, uint32_t alignment = 1, size_t bytes = 0) {
  const Run run = page_heap.take({.granules = granules,
                                  .use = Use::kSpan,
                                  .bytes = bytes != 0 ? bytes : granules * kGranule,
                                  .alignment = alignment});
  if (clean != nullptr) *clean = run.clean;
  return static_cast<Span*>(run.head);
}

inline Slab* take_slab(SizeClass c) {
  return static_cast<Slab*>(page_heap.take({.granules = slab_granules(c), .use = Use::kSlab, .size_class = c}).head);
}

}  // namespace test
}  // namespace annex
