// Invariants of the arenas' books, checked from outside: every granule belongs to exactly one run, free neighbours are
// joined, and the sums agree.
#pragma once

#include <gtest/gtest.h>

#include "core/arena.h"
#include "core/commitment.h"

namespace annex::test {

#define ANNEX_HOLDS(condition) \
  if (!(condition)) return #condition

// The first invariant that is broken, nullptr where all hold. With the arena lock held, so that nothing may allocate
// here: what GoogleTest has to say comes after.
inline const char* broken_invariant() {
  size_t live = 0;
  size_t dirty = 0;
  size_t dirty_runs = 0;
  for (uint32_t i = 0; i < arena_count; ++i) {
    const Granule* before = nullptr;
    uint32_t length = 0;
    const Granule* run = arenas[i].first();
    for (; run < arenas[i].frontier(); before = run, run += length) {
      switch (run->kind) {
        case Kind::kSlab:
          length = slab_granules(run->size_class);
          for (uint32_t k = 1; k < length; ++k) {
            ANNEX_HOLDS(run[k].kind == Kind::kSlabTail);
            ANNEX_HOLDS(run[k].back == k);
            ANNEX_HOLDS(run[k].limit == 0u);
          }
          ANNEX_HOLDS(run->carved <= slab_capacity(run->size_class));
          ANNEX_HOLDS(used_of(run) <= run->carved);
          live += length;
          break;
        case Kind::kSpan:
          length = run->length;
          ANNEX_HOLDS(run->limit == 0u);
          ANNEX_HOLDS(run->span.bytes <= length * kGranule);
          if (length > 1) {
            ANNEX_HOLDS(run[length - 1].kind == Kind::kSpanTail);
          }
          live += length;
          break;
        case Kind::kFree:
          length = run->length;
          ANNEX_HOLDS(run->limit == 0u);
          ANNEX_HOLDS(run[length - 1].kind == Kind::kFree);
          ANNEX_HOLDS(run[length - 1].length == length);
          ANNEX_HOLDS(run[length - 1].state_of_free == run->state_of_free);
          if (before != nullptr && before->kind == Kind::kFree) {
            ANNEX_HOLDS(before->state_of_free != run->state_of_free);
          }
          if (is_dirty(run)) {
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
  ANNEX_HOLDS(live * kGranule == commitment.live);
  ANNEX_HOLDS(dirty * kGranule == commitment.dirty);
  size_t in_age_list = 0;
  const Granule* older = nullptr;
  for (const Granule* run = commitment.oldest; run != nullptr; older = run, run = run->age.newer) {
    ANNEX_HOLDS(run->age.older == older);
    ANNEX_HOLDS(run->kind == Kind::kFree);
    ANNEX_HOLDS(is_dirty(run));
    ++in_age_list;
  }
  ANNEX_HOLDS(commitment.newest == older);
  ANNEX_HOLDS(in_age_list == dirty_runs);
  return nullptr;
}

#undef ANNEX_HOLDS

inline void expect_consistent() {
  const char* broken = nullptr;
  {
    os::Guard guard(arena_lock);
    broken = broken_invariant();
  }
  EXPECT_EQ(broken, nullptr) << broken;
}

}  // namespace annex::test
