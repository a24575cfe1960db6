// Balanced commitment: the formulas of commitment.h, one by one.
#include "core/commitment.h"

#include <gtest/gtest.h>

#include <cstring>

#include "consistency.h"
#include "core/block.h"
#include "core/purge.h"
#include "core/runs.h"
#include "core/span.h"
#include "os/clock.h"
#include "os/options.h"

namespace annex {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

Granule* span(uint32_t granules) {
  bool clean;
  Granule* run = take_span_run(granules, 1, granules * kGranule, &clean);
  return run;
}

// What is dirty at this moment is due; what is freed from here on is not for 20 s. (The clock may begin at 0 with the
// machine, so runs can't be made older than that.)
void make_all_due() {
  os::Guard guard(arena_lock);
  os::options.purge_delay_ms = 20 * 1000;
  for (Granule* run = commitment.oldest; run != nullptr; run = run->age.newer) run->age.freed_ms -= 20 * 1000;
}

class CommitmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    os::options.purge_delay_ms = 3600 * 1000;
    purge_all();
  }
  void TearDown() override { os::options.purge_delay_ms = 1000; }
};

TEST_F(CommitmentTest, StepsGrowWithTheHeapWithinBounds) {
  EXPECT_EQ(commit_step(0), kMiB);
  EXPECT_EQ(commit_step(40 * kMiB), 10 * kMiB);
  EXPECT_EQ(commit_step(size_t{1} << 40), 64 * kMiB);
}

TEST_F(CommitmentTest, NoDelayGivesBackAtOnce) {
  Granule* run = span(64);
  os::options.purge_delay_ms = 0;
  give_span_run(run, false);
  EXPECT_EQ(commitment.dirty, 0u);
  test::expect_consistent();
}

TEST_F(CommitmentTest, NegativeDelayKeepsEverything) {
  os::options.purge_delay_ms = -1;
  Granule* run = span(64);
  give_span_run(run, false);
  const size_t dirty = commitment.dirty;
  EXPECT_GE(dirty, 64 * kGranule);
  {
    os::Guard guard(arena_lock);
    before_growth(size_t{1} << 32);
  }
  EXPECT_EQ(commitment.dirty, dirty);
}

TEST_F(CommitmentTest, AKeeperGivesBackWhatIsDueStepByStep) {
  keeper_comes();
  give_span_run(span(80), false);  // 5 MiB
  const size_t dirty = commitment.dirty;
  purge_due();
  EXPECT_EQ(commitment.dirty, dirty);
  make_all_due();
  {
    os::Guard guard(arena_lock);
    give_back_due(os::now_ms(), 64 * kMiB);
  }
  EXPECT_EQ(commitment.dirty, dirty);  // due, but the keeper's
  purge_due();
  EXPECT_EQ(commitment.dirty, dirty - 2 * kMiB);
  keeper_leaves();
  EXPECT_EQ(commitment.dirty, dirty - 80 * kGranule);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ThreadsThatComeByGiveBackWhatIsDueStepByStep) {
  Granule* small = span(1);
  give_span_run(span(160), false);  // 10 MiB
  const size_t dirty = commitment.dirty;
  make_all_due();
  give_span_run(small, false);
  EXPECT_EQ(commitment.dirty, dirty + kGranule - 2 * kMiB);
  Granule* reused = span(64);  // taken from what is dirty: nothing goes back for that
  EXPECT_EQ(commitment.dirty, dirty + kGranule - 2 * kMiB - 64 * kGranule);
  Granule* clean = span(256);  // more than is still due
  EXPECT_LE(commitment.dirty, kGranule);
  give_span_run(reused, false);
  give_span_run(clean, false);
  test::expect_consistent();
}

TEST_F(CommitmentTest, AJoinedRunIsAsOldAsItsLongestPart) {
  const auto shorten = [](Granule* run, uint32_t granules) { resize_span(run, granules * kGranule); };
  Granule* run = span(512);
  shorten(run, 384);
  make_all_due();
  shorten(run, 352);
  EXPECT_EQ(commitment.dirty, 128 * kGranule);  // the new 32 were due with them
  purge_all();
  shorten(run, 351);
  make_all_due();
  shorten(run, 300);
  EXPECT_EQ(commitment.dirty, 52 * kGranule);  // the old one waits with them
  give_span_run(run, false);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ARunIsNotDueBeforeItWasFreed) {
  give_span_run(span(80), false);
  const size_t dirty = commitment.dirty;
  {
    os::Guard guard(arena_lock);
    // The clock was read before another thread freed it, and then this one waited for the lock.
    give_back_due(commitment.oldest->age.freed_ms - 1, 64 * kMiB);
  }
  EXPECT_EQ(commitment.dirty, dirty);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthGivesBackWhatIsKeptBeyondAnEighth) {
  Granule* runs[16];
  for (auto& run : runs) run = span(160);  // 10 MiB each
  for (int i = 0; i < 16; i += 2) give_span_run(runs[i], false);
  EXPECT_GE(commitment.dirty, 80 * kMiB);
  {
    os::Guard guard(arena_lock);
    commitment.peak = 0;  // as if the heap had never been larger
    before_growth(kMiB);
  }
  EXPECT_LE(commitment.dirty, std::max(2 * kMiB, commitment.live / 8));
  for (int i = 1; i < 16; i += 2) give_span_run(runs[i], false);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ASpanThatGrowsInPlaceGivesBackToo) {
  Granule* other = span(320);  // 20 MiB
  Granule* grows = span(512);
  ASSERT_TRUE(resize_span(grows, 64 * kGranule));
  purge_all();  // what follows it is clean
  give_span_run(other, false);
  commitment.peak = 0;
  ASSERT_TRUE(resize_span(grows, 512 * kGranule));
  EXPECT_EQ(grows->length, 512u);
  EXPECT_LE(commitment.dirty, std::max(2 * kMiB, commitment.live / 8));
  // Over what is dirty it grows as it is.
  ASSERT_TRUE(resize_span(grows, 64 * kGranule));
  const size_t dirty = commitment.dirty;
  commitment.peak = 0;
  ASSERT_TRUE(resize_span(grows, 128 * kGranule));
  EXPECT_EQ(commitment.dirty, dirty - 64 * kGranule);
  give_span_run(grows, false);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthLeavesItToAKeeperThatKeepsUp) {
  Granule* live = span(640);  // 40 MiB
  const auto grow = [] {
    os::Guard guard(arena_lock);
    commitment.peak = 0;
    before_growth(kMiB);
  };
  keeper_comes();
  give_span_run(span(112), false);
  const size_t dirty = commitment.dirty;  // 7 MiB, more than an eighth of live
  grow();
  EXPECT_EQ(commitment.dirty, dirty);
  while (purge_after_growth()) {
  }
  EXPECT_LE(commitment.dirty, commitment.live / 8);
  EXPECT_GE(commitment.dirty + 2 * kMiB, commitment.live / 8);
  give_span_run(span(320), false);  // 20 MiB, more than a quarter
  grow();
  EXPECT_LE(commitment.dirty, commitment.live / 8);
  keeper_leaves();
  give_span_run(live, false);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthBelowThePeakKeepsWhatIsDirty) {
  Granule* run = span(1600);  // peak is at least 100 MiB from here on
  give_span_run(run, false);
  Granule* kept = span(320);
  {
    os::Guard guard(arena_lock);
    before_growth(16 * kGranule);
  }
  // Only what would have raised the peak went back, in pieces of 2 MiB.
  EXPECT_GE(commitment.dirty, 1280 * kGranule - 2 * kMiB);
  give_span_run(kept, false);
}

TEST_F(CommitmentTest, SmallHeapsGetNoHugePages) {
  const size_t touched = commitment.touched.exchange(kProofOfGrowth - 1);
  EXPECT_FALSE(slabs_want_huge_pages());
  EXPECT_FALSE(span_wants_huge_pages(4 * kMiB));
  commitment.touched = std::max(kProofOfGrowth, commitment.live);
  EXPECT_TRUE(slabs_want_huge_pages());
  EXPECT_TRUE(span_wants_huge_pages(kMiB));
  EXPECT_FALSE(span_wants_huge_pages(40 * 1024));  // would leave 24 KiB of its granule unused
  EXPECT_FALSE(span_wants_huge_pages(commitment.live + 2 * kMiB));
  commitment.touched = touched;
}

TEST_F(CommitmentTest, SpansThatAreFilledGetHugePages) {
  const auto fresh_span = [](size_t touched) {
    purge_all();
    bool zero = false;
    char* block = static_cast<char*>(allocate_span(4 * kMiB, 16, &zero));
    EXPECT_TRUE(zero);
    memset(block, 1, touched);
    return block;
  };
  const size_t slabs_then = commitment.slabs_then;
  commitment.slabs_then = 0;  // slabs prove nothing: they have taken much, and used little of it
  const size_t touched = commitment.touched_then;
  commitment.touched_then = SIZE_MAX / 4;
  char* other = fresh_span(4 * kMiB);
  const auto freed = [&](size_t touched) { free_span(block_or_die(fresh_span(touched))); };
  freed(4 * kMiB);
  EXPECT_TRUE(span_wants_huge_pages(4 * kMiB));
  EXPECT_FALSE(span_wants_huge_pages(commitment.live + kMiB));  // more than is known to be used
  freed(2 * kMiB);
  EXPECT_FALSE(span_wants_huge_pages(4 * kMiB));
  freed(4 * kMiB);
  EXPECT_TRUE(span_wants_huge_pages(4 * kMiB));
  free_span(block_or_die(other));
  commitment.slabs_then = slabs_then;
  commitment.touched_then = touched;
}

TEST_F(CommitmentTest, SlabsThatStayEmptyGetNoHugePages) {
  const size_t touched = commitment.touched.exchange(std::max(4 * kProofOfGrowth, 2 * commitment.live));
  Granule* slabs[64];
  bool clean;
  const auto take = [&](Granule*& slab) { slab = take_slab_run(0, &clean); };
  for (Granule*& slab : slabs) take(slab);
  note_fresh_slabs();
  commitment.slabs_then -= 64 * kGranule;  // as if none of these had needed fresh memory
  EXPECT_FALSE(slabs_want_huge_pages());
  note_touched(47 * kGranule);
  EXPECT_FALSE(slabs_want_huge_pages());
  note_touched(kGranule);  // 3/4
  EXPECT_TRUE(slabs_want_huge_pages());
  for (Granule* slab : slabs) give_slab_run(slab);
  commitment.touched = touched;
}

TEST_F(CommitmentTest, PurgeAllLeavesNothingDirty) {
  give_span_run(span(33), false);
  EXPECT_GT(purge_all(), 0u);
  EXPECT_EQ(commitment.dirty, 0u);
  EXPECT_EQ(purge_all(), 0u);
}

// --- decisions, of books that no memory is behind
// ---------------------------------------------------------------------

class Books : public ::testing::Test {
 protected:
  void SetUp() override {
    before_.live = commitment.live;
    before_.dirty = commitment.dirty;
    before_.peak = commitment.peak;
    before_.keepers = commitment.keepers;
    before_.touched = commitment.touched.load();
  }
  void TearDown() override {
    commitment.live = before_.live;
    commitment.dirty = before_.dirty;
    commitment.peak = before_.peak;
    commitment.keepers = before_.keepers;
    commitment.touched = before_.touched.load();
    os::options.purge_delay_ms = 1000;
  }

 private:
  Commitment before_;
};

TEST_F(Books, WhatGrowthGivesBack) {
  commitment.live = 80 * kMiB;
  commitment.touched = 80 * kMiB;
  commitment.dirty = 30 * kMiB;
  commitment.peak = 110 * kMiB;
  EXPECT_EQ(growth_excess(0), 0u);         // no more than there was before
  EXPECT_EQ(growth_excess(1), kHugePage);  // a byte above: in whole pieces
  EXPECT_EQ(growth_excess(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(growth_excess(50 * kMiB), 20 * kMiB);  // an eighth of what is touched stays
  commitment.touched = 16 * kMiB;
  EXPECT_EQ(growth_excess(50 * kMiB), 28 * kMiB);
  commitment.live = 2 * kMiB;
  commitment.touched = kMiB;
  commitment.dirty = kMiB / 4;
  EXPECT_EQ(growth_excess(1000 * kMiB), 0u);  // that little stays in any case
  commitment.dirty += kGranule;
  EXPECT_EQ(growth_excess(1000 * kMiB), kHugePage);
}

TEST_F(Books, GrowthWaitsForAKeeperThatKeepsUp) {
  commitment.live = 80 * kMiB;
  commitment.touched = 80 * kMiB;
  commitment.dirty = 20 * kMiB;
  EXPECT_FALSE(growth_can_wait());
  commitment.keepers = 1;
  EXPECT_TRUE(growth_can_wait());
  commitment.dirty = 21 * kMiB;
  EXPECT_FALSE(growth_can_wait());
}

TEST_F(Books, WhatIsDue) {
  Granule run{};
  run.age.freed_ms = 5000;
  os::options.purge_delay_ms = 1000;
  EXPECT_FALSE(is_due(&run, 5999));
  EXPECT_TRUE(is_due(&run, 6000));
  EXPECT_FALSE(is_due(&run, 4000));  // freed after the clock was read
  os::options.purge_delay_ms = 0;
  EXPECT_TRUE(is_due(&run, 5000));
  os::options.purge_delay_ms = -1;
  EXPECT_FALSE(is_due(&run, 1u << 30));
}

}  // namespace
}  // namespace annex
