// Arenas: random taking and giving keeps the books straight; clean memory is zero; alignment, limits, neighbours.
#include "pages/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "consistency.h"
#include "observe/walk.h"
#include "os/options.h"
#include "runs.h"

namespace annex {
namespace {

struct Taken {
  Granule* head;
  uint32_t granules;
  bool slab;
};

void give(const Taken& taken) {
  if (taken.slab) {
    page_heap.give_slab(taken.head);
  } else {
    page_heap.give_span(as_span(taken.head));
  }
}

Slab* take_slab(uint32_t granules) {
  SizeClass c = 0;
  while (slab_granules(c) != granules) ++c;
  return test::take_slab(c);
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
        if (page_heap.resize(as_span(t.head), length * kGranule)) t.granules = length;
      } else {
        give(t);
        t = taken.back();
        taken.pop_back();
      }
    } else {
      const bool slab = random() % 2 == 0;
      const uint32_t granules = slab ? 1 + random() % 3 : 1 + random() % (random() % 8 == 0 ? 100 : 10);
      const uint32_t alignment = !slab && random() % 4 == 0 ? 1u << random() % 7 : 1;
      Granule* head = nullptr;
      if (slab) head = take_slab(granules);
      if (!slab) head = test::take_span(granules, nullptr, alignment);
      ASSERT_NE(head, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(start_of(head)) % (alignment * kGranule), 0u);
      ASSERT_EQ(granule_of(start_of(head)), head);
      memset(start_of(head), 0xEE, 64);
      taken.push_back({head, granules, slab});
    }
    if (step % 97 == 0) page_heap.trim();
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
    ASSERT_TRUE(page_heap.set_up());  // which looks at the limits
    page_heap.trim();
    page_heap.books.addresses_are_scarce = true;
  }
  void TearDown() override {
    page_heap.books.addresses_are_scarce = false;
    os::options.purge_delay_ms = 1000;
  }
};

TEST_F(Scarce, WhatIsDueIsUnmappedAndMappedAgain) {
  Span* const behind = test::take_span(64);
  Span* run = test::take_span(64);
  Span* const last = test::take_span(1);
  memset(start_of(run), 0x5A, 64 * kGranule);
  const size_t committed = page_heap.books.committed;
  os::options.purge_delay_ms = 0;
  page_heap.give_span(run);
  EXPECT_LE(page_heap.books.committed, committed - 64 * kGranule);
  test::expect_consistent();
  os::options.purge_delay_ms = 1000;
  bool clean = false;
  Span* again = test::take_span(48, &clean);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(clean);
  for (size_t at = 0; at < 48 * kGranule; at += 512) ASSERT_EQ(start_of(again)[at], 0);
  test::expect_consistent();
  for (Span* taken : {behind, again, last}) page_heap.give_span(taken);
  page_heap.trim();
  test::expect_consistent();
}

TEST_F(Scarce, ATailComesBackWithItsSpan) {
  Span* const span = test::take_span(3, nullptr, 1, 2 * kGranule + 4096);
  Span* const last = test::take_span(1);
  const size_t committed = page_heap.books.committed;
  ASSERT_TRUE(PageHeapTest::unmap_tail(span));
  EXPECT_EQ(page_heap.books.committed, committed - kGranule + 4096);
  memset(start_of(span), 1, 2 * kGranule + 4096);
  EXPECT_TRUE(page_heap.resize(span, 3 * kGranule));
  EXPECT_EQ(page_heap.books.committed, committed);
  memset(start_of(span), 1, 3 * kGranule);
  test::expect_consistent();
  page_heap.give_span(span);
  page_heap.give_span(last);
  test::expect_consistent();
}

TEST(Arena, CleanMemoryReadsAsZero) {
  for (int round = 0; round < 20; ++round) {
    bool clean = false;
    Span* run = test::take_span(8, &clean);
    ASSERT_NE(run, nullptr);
    char* start = start_of(run);
    if (clean) {
      for (size_t i = 0; i < 8 * kGranule; i += 512) ASSERT_EQ(start[i], 0);
    }
    memset(start, 0x5A, 8 * kGranule);
    page_heap.give_span(run);
    if (round % 2 == 1) page_heap.trim();
  }
}

// What annex_stats and annex_heap_walk see of a run that was taken this very moment: a walk that has another length of
// it would look for the next run in the middle of this one.
annex_region seen_by_a_walk(const Granule* run) {
  annex_region found = {};
  found.start = start_of(run);
  const Locked lock;
  observe::walk(
      lock,
      [](const annex_region* region, void* context) {
        auto* wanted = static_cast<annex_region*>(context);
        if (region->start == wanted->start) *wanted = *region;
        return region->bytes == 0 ? 1 : 0;
      },
      &found);
  return found;
}

TEST(Arena, AWalkSeesARunAsSoonAsItIsTaken) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const uint32_t granules = slab_granules(c);
    Span* span = test::take_span(granules + 1, nullptr, 1, granules * kGranule + 4096);  // what the slab may stand in
    annex_region region = seen_by_a_walk(span);
    EXPECT_EQ(region.kind, ANNEX_REGION_SPAN);
    EXPECT_EQ(region.bytes, (granules + 1) * kGranule);
    EXPECT_EQ(region.block_size, granules * kGranule + 4096);
    page_heap.give_span(span);
    Slab* slab = test::take_slab(c);
    region = seen_by_a_walk(slab);
    EXPECT_EQ(region.kind, ANNEX_REGION_SLAB);
    EXPECT_EQ(region.bytes, granules * kGranule) << "class " << int{c};
    EXPECT_EQ(region.block_size, block_size(c));
    EXPECT_EQ(region.used, 0u);
    page_heap.give_slab(slab);
  }
}

// As in the books (annex_stats.dirty), whatever a thread has set aside to give it back.
TEST(Arena, AWalkSeesWhatIsBeingGivenBackAsFreeAndNotDirty) {
  const auto seen = [](bool taken) {
    const Locked lock;
    FreeRuns& free_runs = PageHeapTest::free_runs(lock);
    FreeRun* const whole = free_runs.newest();
    const uint32_t granules = whole->length;
    Granule* const part = taken ? free_runs.take(whole) : whole;
    annex_region found = {};
    found.start = start_of(part);
    observe::walk(
        lock,
        [](const annex_region* region, void* context) {
          auto* wanted = static_cast<annex_region*>(context);
          if (region->start == wanted->start) *wanted = *region;
          return 0;
        },
        &found);
    if (taken) free_runs.put(part, granules, FreeState::kDirty, 0);
    return found;
  };
  os::options.purge_delay_ms = 3600 * 1000;
  page_heap.trim();
  page_heap.give_span(test::take_span(8));
  for (const bool taken : {false, true}) {
    const annex_region region = seen(taken);
    EXPECT_EQ(region.kind, ANNEX_REGION_FREE);
    EXPECT_EQ(region.dirty != 0, !taken);
  }
  os::options.purge_delay_ms = 1000;
  test::expect_consistent();
}

TEST(Arena, DirtyMemoryIsUsedBeforeFresh) {
  Span* first = test::take_span(5);
  page_heap.give_span(first);
  bool clean = true;
  Span* second = test::take_span(5, &clean);
  EXPECT_FALSE(clean);
  page_heap.give_span(second);
}

// Six runs beside each other, so that what becomes of them is known; the outer two stay taken.
class Neighbours : public ::testing::Test {
 protected:
  void SetUp() override {
    os::options.purge_delay_ms = 3600 * 1000;
    page_heap.trim();
    Span* whole = test::take_span(6 * kLength);
    page_heap.give_span(whole);
    for (Span*& run : runs_) run = test::take_span(kLength);
    std::sort(std::begin(runs_), std::end(runs_));
    ASSERT_EQ(runs_[5] - runs_[0], 5 * kLength);
  }
  void TearDown() override {
    for (Span* run : runs_) {
      if (run != nullptr) page_heap.give_span(run);
    }
    test::expect_consistent();
    os::options.purge_delay_ms = 1000;
  }
  void free_clean(int index) {
    free_dirty(index);
    page_heap.trim();
  }
  void free_dirty(int index) {
    memset(start_of(runs_[index]), 0x5A, kLength * kGranule);
    page_heap.give_span(runs_[index]);
    runs_[index] = nullptr;
  }
  // Granules: what is wanted is below 2 MiB, so nothing is moved (pages/gather.cpp).
  static constexpr uint32_t kLength = 8;
  Span* runs_[6] = {};
};

TEST_F(Neighbours, ADirtyRunIsUsedWithTheCleanOnesBesideIt) {
  Span* place = runs_[1];
  free_clean(1);
  free_clean(4);
  free_dirty(2);
  free_dirty(3);
  const size_t purged = page_heap.books.purged_total;
  bool clean = true;
  constexpr uint32_t kWanted = 3 * kLength + 5;  // from both sides
  Span* run = test::take_span(kWanted, &clean);
  EXPECT_FALSE(clean);
  EXPECT_EQ(run, place + kLength - 5);
  EXPECT_EQ(page_heap.books.dirty, 0u);
  EXPECT_EQ(page_heap.books.purged_total, purged);  // it was used, not given back
  test::expect_consistent();
  page_heap.give_span(run);
}

TEST_F(Neighbours, ARunThatIsMostlyCleanStaysClean) {
  free_clean(1);
  free_clean(3);
  free_dirty(2);
  bool clean = false;
  constexpr uint32_t kWanted = 2 * kLength + 2;  // less than half of it would be dirty
  Span* run = test::take_span(kWanted, &clean);
  EXPECT_TRUE(clean);
  page_heap.give_span(run);
}

TEST(Arena, TheLimitIsKept) {
  const size_t live = page_heap.books.live;
  os::options.max_heap_bytes = live + 10 * kGranule;
  EXPECT_EQ(test::take_span(11), nullptr);
  Span* run = test::take_span(10);
  EXPECT_NE(run, nullptr);
  EXPECT_EQ(test::take_span(1), nullptr);
  EXPECT_FALSE(page_heap.resize(run, 11 * kGranule));
  os::options.max_heap_bytes = 0;
  page_heap.give_span(run);
}

TEST(Arena, AddressesOfNoArenaAreNotFound) {
  int local = 0;
  EXPECT_EQ(granule_of(&local), nullptr);
  EXPECT_EQ(granule_of(nullptr), nullptr);
  EXPECT_EQ(granule_of(reinterpret_cast<void*>(UINTPTR_MAX)), nullptr);
}

}  // namespace
}  // namespace annex
