// Balanced commitment: the formulas of page_heap.books.h, one by one.
#include "pages/commitment.h"

#include <gtest/gtest.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "consistency.h"
#include "core/block.h"
#include "core/span.h"
#include "os/clock.h"
#include "os/options.h"
#include "pages/page_heap.h"
#include "runs.h"

namespace annex {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

Span* span(uint32_t granules) { return test::take_span(granules); }

const FreeRun* oldest() {
  const Locked lock;
  return PageHeapTest::free_runs(lock).oldest();
}

// What is dirty at this moment is due; what is freed from here on is not for 20 s. (The clock may begin at 0 with the
// machine, so runs can't be made older than that.)
void make_all_due() {
  const Locked lock;
  os::options.purge_delay_ms = 20 * 1000;
  for (FreeRun* run = PageHeapTest::free_runs(lock).oldest(); run != nullptr; run = run->newer)
    run->freed_ms -= 20 * 1000;
}

class CommitmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    os::options.purge_delay_ms = 3600 * 1000;
    page_heap.trim();
  }
  void TearDown() override { os::options.purge_delay_ms = 1000; }
};

TEST_F(CommitmentTest, StepsGrowWithTheHeapWithinBounds) {
  EXPECT_EQ(commitment::step(page_heap.books, 0), kMiB);
  EXPECT_EQ(commitment::step(page_heap.books, 40 * kMiB), 10 * kMiB);
  EXPECT_EQ(commitment::step(page_heap.books, size_t{1} << 40), 64 * kMiB);
}

TEST_F(CommitmentTest, NoDelayGivesBackAtOnce) {
  Span* run = span(64);
  os::options.purge_delay_ms = 0;
  page_heap.give_span(run);
  EXPECT_EQ(page_heap.books.dirty, 0u);
  test::expect_consistent();
}

TEST_F(CommitmentTest, TrimWaitsForWhatOthersAreGivingBack) {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::thread other([&] {
    Locked lock;
    const Unlocked unlocked(lock);
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  page_heap.trim();
  EXPECT_TRUE(ended);
  other.join();
}

TEST_F(CommitmentTest, NegativeDelayKeepsEverything) {
  os::options.purge_delay_ms = -1;
  Span* run = span(64);
  page_heap.give_span(run);
  const size_t dirty = page_heap.books.dirty;
  EXPECT_GE(dirty, 64 * kGranule);
  PageHeapTest::before_growth(size_t{1} << 32);
  EXPECT_EQ(page_heap.books.dirty, dirty);
}

TEST_F(CommitmentTest, AKeeperGivesBackWhatIsDueStepByStep) {
  page_heap.keeper_comes();
  page_heap.give_span(span(80));  // 5 MiB
  const size_t dirty = page_heap.books.dirty;
  page_heap.keeper_purges_due();
  EXPECT_EQ(page_heap.books.dirty, dirty);
  make_all_due();
  PageHeapTest::purge_due(os::now_ms(), 64 * kMiB);
  EXPECT_EQ(page_heap.books.dirty, dirty);  // due, but the keeper's
  page_heap.keeper_purges_due();
  EXPECT_EQ(page_heap.books.dirty, dirty - 2 * kMiB);
  page_heap.keeper_leaves();
  EXPECT_EQ(page_heap.books.dirty, dirty - 80 * kGranule);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ThreadsThatComeByGiveBackWhatIsDueStepByStep) {
  Span* small = span(1);
  page_heap.give_span(span(160));  // 10 MiB
  const size_t dirty = page_heap.books.dirty;
  make_all_due();
  page_heap.give_span(small);
  EXPECT_EQ(page_heap.books.dirty, dirty + kGranule - 2 * kMiB);
  Span* reused = span(64);  // taken from what is dirty: nothing goes back for that
  EXPECT_EQ(page_heap.books.dirty, dirty + kGranule - 2 * kMiB - 64 * kGranule);
  Span* clean = span(256);  // more than is still due
  EXPECT_LE(page_heap.books.dirty, kGranule);
  page_heap.give_span(reused);
  page_heap.give_span(clean);
  test::expect_consistent();
}

TEST_F(CommitmentTest, AJoinedRunIsAsOldAsItsLongestPart) {
  const auto shorten = [](Span* run, uint32_t granules) { page_heap.resize(run, granules * kGranule); };
  Span* run = span(512);
  shorten(run, 384);
  make_all_due();
  shorten(run, 352);
  EXPECT_EQ(page_heap.books.dirty, 128 * kGranule);  // the new 32 were due with them
  page_heap.trim();
  shorten(run, 351);
  make_all_due();
  shorten(run, 300);
  EXPECT_EQ(page_heap.books.dirty, 52 * kGranule);  // the old one waits with them
  page_heap.give_span(run);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ARunIsNotDueBeforeItWasFreed) {
  page_heap.give_span(span(80));
  const size_t dirty = page_heap.books.dirty;
  // The clock was read before another thread freed it, and then this one waited for the lock.
  PageHeapTest::purge_due(oldest()->freed_ms - 1, 64 * kMiB);
  EXPECT_EQ(page_heap.books.dirty, dirty);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthGivesBackWhatIsKeptBeyondAnEighth) {
  Span* runs[16];
  for (auto& run : runs) run = span(160);  // 10 MiB each
  for (int i = 0; i < 16; i += 2) page_heap.give_span(runs[i]);
  EXPECT_GE(page_heap.books.dirty, 80 * kMiB);
  page_heap.books.needed = {};  // as if the heap had never been larger
  PageHeapTest::before_growth(kMiB);
  EXPECT_LE(page_heap.books.dirty, std::max(2 * kMiB, page_heap.books.live / 8));
  for (int i = 1; i < 16; i += 2) page_heap.give_span(runs[i]);
  test::expect_consistent();
}

TEST_F(CommitmentTest, ASpanThatGrowsInPlaceGivesBackToo) {
  Span* other = span(320);  // 20 MiB
  Span* grows = span(512);
  ASSERT_TRUE(page_heap.resize(grows, 64 * kGranule));
  page_heap.trim();  // what follows it is clean
  page_heap.give_span(other);
  page_heap.books.needed = {};
  ASSERT_TRUE(page_heap.resize(grows, 512 * kGranule));
  EXPECT_EQ(grows->length, 512u);
  EXPECT_LE(page_heap.books.dirty, std::max(2 * kMiB, page_heap.books.live / 8));
  // Over what is dirty it grows as it is.
  ASSERT_TRUE(page_heap.resize(grows, 64 * kGranule));
  const size_t dirty = page_heap.books.dirty;
  page_heap.books.needed = {};
  ASSERT_TRUE(page_heap.resize(grows, 128 * kGranule));
  EXPECT_EQ(page_heap.books.dirty, dirty - 64 * kGranule);
  page_heap.give_span(grows);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthLeavesItToAKeeperThatKeepsUp) {
  Span* live = span(640);  // 40 MiB
  const auto grow = [] {
    page_heap.books.needed = {};
    PageHeapTest::before_growth(kMiB);
  };
  page_heap.keeper_comes();
  page_heap.give_span(span(112));
  const size_t dirty = page_heap.books.dirty;  // 7 MiB, more than an eighth of live
  grow();
  EXPECT_EQ(page_heap.books.dirty, dirty);
  while (page_heap.keeper_purges_after_growth()) {
  }
  EXPECT_LE(page_heap.books.dirty, page_heap.books.live / 8);
  EXPECT_GE(page_heap.books.dirty + 2 * kMiB, page_heap.books.live / 8);
  page_heap.give_span(span(320));  // 20 MiB, more than a quarter
  grow();
  EXPECT_LE(page_heap.books.dirty, page_heap.books.live / 8);
  page_heap.keeper_leaves();
  page_heap.give_span(live);
  test::expect_consistent();
}

TEST_F(CommitmentTest, GrowthBelowThePeakKeepsWhatIsDirty) {
  Span* run = span(1600);  // peak is at least 100 MiB from here on
  page_heap.give_span(run);
  Span* kept = span(320);
  PageHeapTest::before_growth(16 * kGranule);
  // Only what would have raised the peak went back, in pieces of 2 MiB.
  EXPECT_GE(page_heap.books.dirty, 1280 * kGranule - 2 * kMiB);
  page_heap.give_span(kept);
}

TEST_F(CommitmentTest, SmallHeapsGetNoHugePages) {
  const bool slabs_fill = std::exchange(page_heap.books.slabs_fill, true);
  const size_t touched = page_heap.books.touched.exchange(commitment::kProofOfGrowth - 1);
  EXPECT_FALSE(commitment::slabs_want_huge_pages(page_heap.books));
  EXPECT_FALSE(commitment::span_wants_huge_pages(page_heap.books, 4 * kMiB));
  page_heap.books.touched = std::max(commitment::kProofOfGrowth, page_heap.books.live);
  EXPECT_TRUE(commitment::slabs_want_huge_pages(page_heap.books));
  EXPECT_TRUE(commitment::span_wants_huge_pages(page_heap.books, kMiB));
  EXPECT_FALSE(
      commitment::span_wants_huge_pages(page_heap.books, 40 * 1024));  // would leave 24 KiB of its granule unused
  EXPECT_FALSE(commitment::span_wants_huge_pages(page_heap.books, page_heap.books.live + 2 * kMiB));
  page_heap.books.touched = touched;
  page_heap.books.slabs_fill = slabs_fill;
}

// Another thread may begin with a slab for each class, most of them never filled.
TEST_F(CommitmentTest, WithSeveralThreadsMostOfAllMustBeTouched) {
  Span* const live = span(640);  // 40 MiB
  const char alone = std::exchange(__libc_single_threaded, 0);
  const bool slabs_fill = std::exchange(page_heap.books.slabs_fill, true);
  const size_t touched = page_heap.books.touched.exchange(page_heap.books.live / 3 * 2 - 1);
  EXPECT_FALSE(commitment::slabs_want_huge_pages(page_heap.books));
  __libc_single_threaded = 1;
  EXPECT_TRUE(commitment::slabs_want_huge_pages(page_heap.books));
  __libc_single_threaded = 0;
  ++page_heap.books.touched;
  EXPECT_TRUE(commitment::slabs_want_huge_pages(page_heap.books));
  page_heap.books.touched = 12 * kMiB;
  const size_t all = std::exchange(page_heap.books.live, 16 * kMiB);
  EXPECT_TRUE(commitment::slabs_want_huge_pages(page_heap.books));  // 3/4 of a smaller heap
  --page_heap.books.touched;
  EXPECT_FALSE(commitment::slabs_want_huge_pages(page_heap.books));
  __libc_single_threaded = 1;
  EXPECT_TRUE(commitment::slabs_want_huge_pages(page_heap.books));
  page_heap.books.touched = 4 * kMiB - 1;
  EXPECT_FALSE(commitment::slabs_want_huge_pages(page_heap.books));
  page_heap.books.live = all;
  page_heap.books.touched = touched;
  page_heap.books.slabs_fill = slabs_fill;
  __libc_single_threaded = alone;
  page_heap.give_span(live);
}

TEST_F(CommitmentTest, SpansThatAreFilledGetHugePages) {
  const auto fresh_span = [](size_t touched) {
    page_heap.trim();
    bool zero = false;
    char* block = static_cast<char*>(allocate_span(4 * kMiB, 16, &zero));
    EXPECT_TRUE(zero);
    memset(block, 1, touched);
    return block;
  };
  const bool slabs_fill = page_heap.books.slabs_fill;
  const size_t slabs_then = page_heap.books.slabs_then;
  page_heap.books.slabs_then = 0;  // slabs prove nothing: they have taken much, and used little of it
  const size_t touched = page_heap.books.touched_then;
  page_heap.books.touched_then = SIZE_MAX / 4;
  page_heap.books.slabs_fill = false;
  const auto release = [](char* block) { free_span(as_span(block_or_die(block))); };
  const auto freed = [&](size_t touched) { release(fresh_span(touched)); };
  release(fresh_span(4 * kMiB));  // whatever was watched before
  page_heap.books.watched_span = nullptr;
  page_heap.books.filled = false;
  // Some alive, the oldest replaced: the last one made is never the next to be freed.
  char* alive[4];
  for (char*& block : alive) block = fresh_span(4 * kMiB);
  for (char*& block : alive) {
    release(block);
    block = fresh_span(4 * kMiB);
  }
  EXPECT_TRUE(commitment::span_wants_huge_pages(page_heap.books, 4 * kMiB));
  // It is seen while they are alive, too.
  page_heap.books.filled = false;
  release(fresh_span(kMiB));  // another one is made; what is watched has been written
  char* const next = fresh_span(2 * kMiB);
  EXPECT_TRUE(page_heap.books.filled);
  release(next);
  page_heap.books.filled = false;
  char* other = alive[0];
  for (int i = 1; i < 4; ++i) release(alive[i]);
  page_heap.books.watched_span = as_span(block_or_die(other));  // it stays, and so another one is watched in the end
  for (int i = 0; i < 32; ++i) freed(4 * kMiB);
  EXPECT_TRUE(commitment::span_wants_huge_pages(page_heap.books, 4 * kMiB));
  EXPECT_FALSE(commitment::span_wants_huge_pages(page_heap.books,
                                                 page_heap.books.live + kMiB));  // more than is known to be used
  freed(2 * kMiB);
  EXPECT_FALSE(commitment::span_wants_huge_pages(page_heap.books, 4 * kMiB));
  freed(4 * kMiB);
  EXPECT_TRUE(commitment::span_wants_huge_pages(page_heap.books, 4 * kMiB));
  release(other);
  page_heap.books.slabs_then = slabs_then;
  page_heap.books.touched_then = touched;
  page_heap.books.slabs_fill = slabs_fill;
}

// A huge page that ends may have put memory behind all of its 2 MiB: what is free there and was never used counts as
// dirty from then on, and goes back like all that is.
TEST_F(CommitmentTest, WhatIsFreeInAHugePageThatEndsIsDirty) {
  const auto before = std::exchange(os::options.huge_pages, os::HugePages::kAlways);
  page_heap.trim();
  uint32_t longest = 0;
  for (const FreeState state : {FreeState::kClean, FreeState::kUnmapped}) {
    const Locked lock;
    const FreeRun* const run = PageHeapTest::free_runs(lock).longest(state);
    if (run != nullptr) longest = std::max(longest, run->length);
  }
  const uint32_t granules = round_up(longest + 1, kGranulesPerHugePage) + 1;
  Span* new_one = span(granules);  // of new addresses, up to 2 MiB
  ASSERT_EQ(page_heap.books.dirty, 0u);
  const uint32_t ended = page_heap.books.huge_ended;
  const size_t huge = page_heap.books.huge;
  page_heap.end_huge_pages(new_one, new_one->length);
  EXPECT_EQ(page_heap.books.huge_ended, ended + 1);
  EXPECT_EQ(page_heap.books.huge, huge - kHugePage);
  EXPECT_EQ(page_heap.books.dirty, (kGranulesPerHugePage - 1) * kGranule);
  page_heap.end_huge_pages(new_one, new_one->length);  // not again
  EXPECT_EQ(page_heap.books.huge, huge - kHugePage);
  test::expect_consistent();
  page_heap.trim();
  EXPECT_EQ(page_heap.books.dirty, 0u);
  page_heap.give_span(new_one);
  // Also where they end in the middle of giving all back.
  new_one = span(granules + kGranulesPerHugePage);
  page_heap.give_span(new_one);
  page_heap.trim();
  EXPECT_EQ(page_heap.books.dirty, 0u);
  os::options.huge_pages = before;
}

TEST_F(CommitmentTest, SlabsThatStayEmptyGetNoHugePages) {
  Books& books = page_heap.books;
  const bool slabs_fill = books.slabs_fill;
  const size_t touched = books.touched.exchange(std::max(4 * commitment::kProofOfGrowth, 2 * books.live));
  Slab* slabs[64];
  for (Slab*& slab : slabs) slab = test::take_slab(0);
  // As if so many of these had not needed fresh memory, and so much of them were filled.
  const auto fill = [&](uint32_t taken, size_t used) {
    books.slabs_then = books.live - books.spans - taken * kGranule;
    books.touched_then = books.touched - books.spans - used;
    commitment::look_at_growth(&books, false);
    return commitment::slabs_want_huge_pages(books);
  };
  EXPECT_FALSE(fill(64, 48 * kGranule - 1));
  EXPECT_TRUE(fill(64, 48 * kGranule));  // 3/4
  EXPECT_TRUE(fill(15, 0));              // less than 1 MiB says nothing
  EXPECT_FALSE(fill(16, 0));
  EXPECT_FALSE(fill(15, 15 * kGranule));
  // Another count begins when slabs need fresh memory, or with 4 MiB.
  const size_t of_slabs = books.live - books.spans;
  commitment::look_at_growth(&books, true);
  EXPECT_EQ(books.slabs_then, of_slabs - 15 * kGranule);
  EXPECT_TRUE(fill(63, 63 * kGranule));
  EXPECT_EQ(books.slabs_then, of_slabs - 63 * kGranule);
  commitment::look_at_growth(&books, true);
  EXPECT_EQ(books.slabs_then, of_slabs);
  EXPECT_EQ(books.touched_then, books.touched - books.spans);
  EXPECT_TRUE(fill(64, 64 * kGranule));
  EXPECT_EQ(books.slabs_then, of_slabs);
  for (Slab* slab : slabs) page_heap.give_slab(slab);
  books.touched = touched;
  books.slabs_fill = slabs_fill;
}

TEST_F(CommitmentTest, PurgeAllLeavesNothingDirty) {
  page_heap.give_span(span(33));
  EXPECT_GT(page_heap.trim(), 0u);
  EXPECT_EQ(page_heap.books.dirty, 0u);
  EXPECT_EQ(page_heap.trim(), 0u);
}

// --- decisions, of books that no memory is behind
// ---------------------------------------------------------------------

class Books : public ::testing::Test {
 protected:
  void SetUp() override {
    before_.live = page_heap.books.live;
    before_.dirty = page_heap.books.dirty;
    before_.needed = page_heap.books.needed;
    before_.keepers = page_heap.books.keepers;
    before_.touched = page_heap.books.touched.load();
  }
  void TearDown() override {
    page_heap.books.live = before_.live;
    page_heap.books.dirty = before_.dirty;
    page_heap.books.needed = before_.needed;
    page_heap.books.keepers = before_.keepers;
    page_heap.books.touched = before_.touched.load();
    os::options.purge_delay_ms = 1000;
  }

 private:
  annex::Books before_;
};

TEST_F(Books, WhatGrowthGivesBack) {
  page_heap.books.live = 80 * kMiB;
  page_heap.books.touched = 80 * kMiB;
  page_heap.books.dirty = 30 * kMiB;
  page_heap.books.needed = {};
  page_heap.books.needed.note(110 * kMiB);
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 0), 0u);         // no more than there was before
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 1), kHugePage);  // a byte above: in whole pieces
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 10 * kMiB), 10 * kMiB);
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 50 * kMiB), 20 * kMiB);  // an eighth of what is touched stays
  page_heap.books.touched = 16 * kMiB;
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 50 * kMiB), 28 * kMiB);
  page_heap.books.live = 2 * kMiB;
  page_heap.books.touched = kMiB;
  page_heap.books.dirty = kMiB / 4;
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 1000 * kMiB), 0u);  // that little stays in any case
  page_heap.books.dirty += kGranule;
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 1000 * kMiB), kHugePage);
}

TEST_F(Books, WhatWasNeededLongAgoIsForgotten) {
  NeededLately needed;
  needed.note(100);
  needed.pass(5000, 1000, 10);  // the first window begins
  EXPECT_EQ(needed, 100u);
  needed.note(50);
  needed.pass(5999, 1000, 10);
  EXPECT_EQ(needed, 100u);
  needed.pass(6000, 1000, 10);
  needed.note(30);
  EXPECT_EQ(needed, 100u);  // in the window before this one
  needed.pass(7000, 1000, 10);
  EXPECT_EQ(needed, 30u);
  needed.note(40);
  needed.pass(9000, 1000, 10);  // nobody came by for a whole window
  EXPECT_EQ(needed, 10u);
}

TEST_F(Books, TenDelaysAreAWindow) {
  os::options.purge_delay_ms = 200;
  page_heap.books.live = 80 * kMiB;
  page_heap.books.touched = 80 * kMiB;
  page_heap.books.dirty = 30 * kMiB;
  page_heap.books.needed = {};
  page_heap.books.needed.note(200 * kMiB);
  for (const uint64_t now : {10'000, 12'000, 13'999}) {
    commitment::note_time(&page_heap.books, now);
    EXPECT_EQ(commitment::growth_excess(page_heap.books, 50 * kMiB), 0u) << now;
  }
  commitment::note_time(&page_heap.books, 14'000);
  EXPECT_EQ(commitment::growth_excess(page_heap.books, 50 * kMiB), 20 * kMiB);
}

TEST_F(Books, GrowthWaitsForAKeeperThatKeepsUp) {
  page_heap.books.live = 80 * kMiB;
  page_heap.books.touched = 80 * kMiB;
  page_heap.books.dirty = 20 * kMiB;
  EXPECT_FALSE(commitment::growth_can_wait(page_heap.books));
  page_heap.books.keepers = 1;
  EXPECT_TRUE(commitment::growth_can_wait(page_heap.books));
  page_heap.books.dirty = 21 * kMiB;
  EXPECT_FALSE(commitment::growth_can_wait(page_heap.books));
}

TEST_F(Books, WhatIsDue) {
  FreeRun run{};
  run.freed_ms = 5000;
  os::options.purge_delay_ms = 1000;
  EXPECT_FALSE(commitment::is_due(&run, 5999));
  EXPECT_TRUE(commitment::is_due(&run, 6000));
  EXPECT_FALSE(commitment::is_due(&run, 4000));  // freed after the clock was read
  os::options.purge_delay_ms = 0;
  EXPECT_TRUE(commitment::is_due(&run, 5000));
  os::options.purge_delay_ms = -1;
  EXPECT_FALSE(commitment::is_due(&run, 1u << 30));
}

}  // namespace
}  // namespace annex
