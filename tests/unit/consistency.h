// Invariants of the page heap's books, checked from outside: every granule belongs to exactly one run, free neighbours
// are joined, and the sums agree.
#pragma once

#include <gtest/gtest.h>

#include "runs.h"

namespace annex::test {

#define ANNEX_HOLDS(condition) \
  if (!(condition)) return #condition

// The first invariant that is broken, nullptr where all hold. With the lock held, so that nothing may allocate
// here: what GoogleTest has to say comes after.
inline const char* broken_invariant(const Locked& lock) {
  size_t live = 0;
  size_t dirty = 0;
  size_t dirty_runs = 0;
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Granule* before = nullptr;
    uint32_t length = 0;
    const Granule* run = arenas[i].first();
    for (; run < arenas[i].frontier(); before = run, run += length) {
      length = run->length;
      ANNEX_HOLDS(run->arena == i);
      switch (run->kind) {
        case Kind::kSlab: {
          const Slab* const slab = static_cast<const Slab*>(run);
          ANNEX_HOLDS(length == slab_granules(slab->size_class));
          for (uint32_t k = 1; k < length; ++k) {
            ANNEX_HOLDS(run[k].kind == Kind::kSlabTail);
            ANNEX_HOLDS(run[k].back == k);
            ANNEX_HOLDS(run[k].limit == 0u);
          }
          ANNEX_HOLDS(slab->carved <= slab_capacity(slab->size_class));
          ANNEX_HOLDS(used_of(slab) <= slab->carved);
          live += length;
          break;
        }
        case Kind::kSpan:
          ANNEX_HOLDS(run->limit == 0u);
          ANNEX_HOLDS(static_cast<const Span*>(run)->bytes <= length * kGranule);
          if (length > 1) {
            ANNEX_HOLDS(run[length - 1].kind == Kind::kTaken);
          }
          live += length;
          break;
        case Kind::kFree:
          ANNEX_HOLDS(run->limit == 0u);
          ANNEX_HOLDS(run[length - 1].kind == Kind::kFree);
          ANNEX_HOLDS(run[length - 1].length == length);
          ANNEX_HOLDS(run[length - 1].state == run->state);
          if (before != nullptr && before->kind == Kind::kFree) {
            ANNEX_HOLDS(before->state != run->state);
          }
          if (run->state == FreeState::kDirty) {
            dirty += length;
            ++dirty_runs;
          }
          break;
        default:
          return "every granule has a kind";
      }
      ANNEX_HOLDS(length > 0);
    }
    ANNEX_HOLDS(run == arenas[i].frontier());
  }
  ANNEX_HOLDS(live * kGranule == page_heap.books.live);
  ANNEX_HOLDS(dirty * kGranule == page_heap.books.dirty);
  size_t in_age_list = 0;
  const FreeRun* older = nullptr;
  for (const FreeRun* run = PageHeapTest::free_runs(lock).oldest(); run != nullptr; older = run, run = run->newer) {
    ANNEX_HOLDS(run->older == older);
    ANNEX_HOLDS(run->kind == Kind::kFree);
    ANNEX_HOLDS(run->state == FreeState::kDirty);
    ++in_age_list;
  }
  ANNEX_HOLDS(PageHeapTest::free_runs(lock).newest() == older);
  ANNEX_HOLDS(in_age_list == dirty_runs);
  return nullptr;
}

#undef ANNEX_HOLDS

inline void expect_consistent() {
  const char* broken = nullptr;
  {
    const Locked lock;
    broken = broken_invariant(lock);
  }
  EXPECT_EQ(broken, nullptr) << broken;
}

}  // namespace annex::test
