// Arenas: random taking and giving keeps the books straight; clean memory is zero; alignment, limits, neighbours.
#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "consistency.h"
#include "core/runs.h"
#include "observe/walk.h"
#include "os/options.h"

namespace annex {
namespace {

struct Taken {
  Granule* head;
  uint32_t granules;
  bool slab;
};

void give(const Taken& taken) {
  if (taken.slab) {
    give_slab_run(taken.head);
  } else {
    give_span_run(taken.head, false);
  }
}

Granule* take(uint32_t granules, bool slab = false, uint32_t alignment = 1) {
  bool clean;
  if (!slab) return take_span_run(granules, alignment, granules * kGranule, &clean);
  SizeClass c = 0;
  while (slab_granules(c) != granules) ++c;
  return take_slab_run(c, &clean);
}

TEST(Arena, RandomOperationsKeepTheBooksStraight) {
  std::mt19937 random(11);
  std::vector<Taken> taken;
  for (int step = 0; step < 4000; ++step) {
    if (taken.size() > 60 || (!taken.empty() && random() % 2 == 0)) {
      const size_t index = random() % taken.size();
      Taken& t = taken[index];
      if (!t.slab && random() % 3 == 0) {
        const uint32_t length = 1 + random() % (2 * t.granules);
        if (resize_span(t.head, length * kGranule)) t.granules = length;
      } else {
        give(t);
        t = taken.back();
        taken.pop_back();
      }
    } else {
      const bool slab = random() % 2 == 0;
      const uint32_t granules = slab ? 1 + random() % 3 : 1 + random() % (random() % 8 == 0 ? 100 : 10);
      const uint32_t alignment = !slab && random() % 4 == 0 ? 1u << random() % 7 : 1;
      Granule* head = take(granules, slab, alignment);
      ASSERT_NE(head, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(start_of(head)) % (alignment * kGranule), 0u);
      ASSERT_EQ(granule_of(start_of(head)), head);
      memset(start_of(head), 0xEE, 64);
      taken.push_back({head, granules, slab});
    }
    if (step % 97 == 0) purge_all();
    if (step % 16 == 0) {
      test::expect_consistent();
      if (HasFailure()) return;
    }
  }
  for (const Taken& t : taken) give(t);
  test::expect_consistent();
}

// Where addresses are scarce: free runs are unmapped and mapped again, the tails of spans too.
class Scarce : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(set_up());  // which looks at the limits
    purge_all();
    addresses_are_scarce = true;
  }
  void TearDown() override {
    addresses_are_scarce = false;
    os::options.purge_delay_ms = 1000;
  }
};

TEST_F(Scarce, WhatIsDueIsUnmappedAndMappedAgain) {
  Granule* const behind = take(64);
  Granule* run = take(64);
  Granule* const last = take(1);
  memset(start_of(run), 0x5A, 64 * kGranule);
  const size_t committed = commitment.committed;
  os::options.purge_delay_ms = 0;
  give_span_run(run, false);
  EXPECT_LE(commitment.committed, committed - 64 * kGranule);
  test::expect_consistent();
  os::options.purge_delay_ms = 1000;
  bool clean = false;
  Granule* again = take_span_run(48, 1, 48 * kGranule, &clean);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(clean);
  for (size_t at = 0; at < 48 * kGranule; at += 512) ASSERT_EQ(start_of(again)[at], 0);
  test::expect_consistent();
  for (Granule* taken : {behind, again, last}) give_span_run(taken, false);
  purge_all();
  test::expect_consistent();
}

TEST_F(Scarce, ATailComesBackWithItsSpan) {
  bool clean;
  Granule* const span = take_span_run(3, 1, 2 * kGranule + 4096, &clean);
  Granule* const last = take(1);
  const size_t committed = commitment.committed;
  {
    os::Guard guard(arena_lock);
    ASSERT_TRUE(arena_of(span)->unmap_tail(span));
  }
  EXPECT_EQ(commitment.committed, committed - kGranule + 4096);
  memset(start_of(span), 1, 2 * kGranule + 4096);
  EXPECT_TRUE(resize_span(span, 3 * kGranule));
  EXPECT_EQ(commitment.committed, committed);
  memset(start_of(span), 1, 3 * kGranule);
  test::expect_consistent();
  give_span_run(span, false);
  give_span_run(last, false);
  test::expect_consistent();
}

TEST(Arena, CleanMemoryReadsAsZero) {
  for (int round = 0; round < 20; ++round) {
    bool clean = false;
    Granule* run = take_span_run(8, 1, 8 * kGranule, &clean);
    ASSERT_NE(run, nullptr);
    char* start = start_of(run);
    if (clean) {
      for (size_t i = 0; i < 8 * kGranule; i += 512) ASSERT_EQ(start[i], 0);
    }
    memset(start, 0x5A, 8 * kGranule);
    give_span_run(run, false);
    if (round % 2 == 1) purge_all();
  }
}

// What annex_stats and annex_heap_walk see of a run that was taken this very moment: a walk that has another length of
// it would look for the next run in the middle of this one.
annex_region seen_by_a_walk(const Granule* run) {
  annex_region found = {};
  found.start = start_of(run);
  observe::walk(
      [](const annex_region* region, void* context) {
        auto* wanted = static_cast<annex_region*>(context);
        if (region->start == wanted->start) *wanted = *region;
        return region->bytes == 0 ? 1 : 0;
      },
      &found);
  return found;
}

TEST(Arena, AWalkSeesARunAsSoonAsItIsTaken) {
  bool clean;
  for (SizeClass c = 0; c < kClasses; ++c) {
    const uint32_t granules = slab_granules(c);
    Granule* span = take_span_run(granules + 1, 1, granules * kGranule + 4096, &clean);  // what the slab may stand in
    annex_region region = seen_by_a_walk(span);
    EXPECT_EQ(region.kind, ANNEX_REGION_SPAN);
    EXPECT_EQ(region.bytes, (granules + 1) * kGranule);
    EXPECT_EQ(region.block_size, granules * kGranule + 4096);
    give_span_run(span, false);
    Granule* slab = take_slab_run(c, &clean);
    region = seen_by_a_walk(slab);
    EXPECT_EQ(region.kind, ANNEX_REGION_SLAB);
    EXPECT_EQ(region.bytes, granules * kGranule) << "class " << int{c};
    EXPECT_EQ(region.block_size, block_size(c));
    EXPECT_EQ(region.used, 0u);
    give_slab_run(slab);
  }
}

TEST(Arena, DirtyMemoryIsUsedBeforeFresh) {
  Granule* first = take(5);
  give_span_run(first, false);
  bool clean = true;
  Granule* second = take_span_run(5, 1, 5 * kGranule, &clean);
  EXPECT_FALSE(clean);
  give_span_run(second, false);
}

// Six runs beside each other, so that what becomes of them is known; the outer two stay taken.
class Neighbours : public ::testing::Test {
 protected:
  void SetUp() override {
    os::options.purge_delay_ms = 3600 * 1000;
    purge_all();
    Granule* whole = take(6 * kLength);
    give_span_run(whole, false);
    for (Granule*& run : runs_) run = take(kLength);
    std::sort(std::begin(runs_), std::end(runs_));
    ASSERT_EQ(runs_[5] - runs_[0], 5 * kLength);
  }
  void TearDown() override {
    for (Granule* run : runs_) {
      if (run != nullptr) give_span_run(run, false);
    }
    test::expect_consistent();
    os::options.purge_delay_ms = 1000;
  }
  void free_clean(int index) {
    free_dirty(index);
    purge_all();
  }
  void free_dirty(int index) {
    memset(start_of(runs_[index]), 0x5A, kLength * kGranule);
    give_span_run(runs_[index], false);
    runs_[index] = nullptr;
  }
  // Granules: what is wanted is below 2 MiB, so nothing is moved (core/gather.h).
  static constexpr uint32_t kLength = 8;
  Granule* runs_[6] = {};
};

TEST_F(Neighbours, ADirtyRunIsUsedWithTheCleanOnesBesideIt) {
  Granule* place = runs_[1];
  free_clean(1);
  free_clean(4);
  free_dirty(2);
  free_dirty(3);
  const size_t purged = commitment.purged_total;
  bool clean = true;
  constexpr uint32_t kWanted = 3 * kLength + 5;  // from both sides
  Granule* run = take_span_run(kWanted, 1, kWanted * kGranule, &clean);
  EXPECT_FALSE(clean);
  EXPECT_EQ(run, place + kLength - 5);
  EXPECT_EQ(commitment.dirty, 0u);
  EXPECT_EQ(commitment.purged_total, purged);  // it was used, not given back
  test::expect_consistent();
  give_span_run(run, false);
}

TEST_F(Neighbours, ARunThatIsMostlyCleanStaysClean) {
  free_clean(1);
  free_clean(3);
  free_dirty(2);
  bool clean = false;
  constexpr uint32_t kWanted = 2 * kLength + 2;  // less than half of it would be dirty
  Granule* run = take_span_run(kWanted, 1, kWanted * kGranule, &clean);
  EXPECT_TRUE(clean);
  give_span_run(run, false);
}

TEST(Arena, TheLimitIsKept) {
  const size_t live = commitment.live;
  os::options.max_heap_bytes = live + 10 * kGranule;
  EXPECT_EQ(take(11), nullptr);
  Granule* run = take(10);
  EXPECT_NE(run, nullptr);
  EXPECT_EQ(take(1), nullptr);
  EXPECT_FALSE(resize_span(run, 11 * kGranule));
  os::options.max_heap_bytes = 0;
  give_span_run(run, false);
}

TEST(Arena, AddressesOfNoArenaAreNotFound) {
  int local = 0;
  EXPECT_EQ(granule_of(&local), nullptr);
  EXPECT_EQ(granule_of(nullptr), nullptr);
  EXPECT_EQ(granule_of(reinterpret_cast<void*>(UINTPTR_MAX)), nullptr);
}

}  // namespace
}  // namespace annex
