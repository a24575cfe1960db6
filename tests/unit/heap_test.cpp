// Heaps: a block is handed out once, slabs come and go, counts stay right.
#include "core/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "consistency.h"
#include "core/block.h"
#include "core/list_order.h"
#include "core/run_cache.h"
#include "pages/commitment.h"
#include "runs.h"

namespace annex {
namespace {

Slab* slab_of(const void* block) { return as_slab(block_or_die(block)); }

// What a front end does with a heap.
struct User {
  Heap heap;
  void* allocate(SizeClass c) {
    Block* block = heap.free[c];
    if (block == nullptr) block = heap.refill(c);
    heap.free[c] = block->next;
    return block;
  }
  void release(void* block) { heap.put_back(slab_of(block), static_cast<Block*>(block)); }
  ~User() { heap.flush(); }
};

TEST(Heap, NoBlockIsHandedOutTwice) {
  User user;
  std::mt19937 random(3);
  std::vector<std::pair<void*, SizeClass>> live;
  std::set<void*> seen;
  for (int step = 0; step < 60000; ++step) {
    if (!live.empty() && random() % 100 < (step % 20000 < 10000 ? 40u : 60u)) {
      const size_t i = random() % live.size();
      user.release(live[i].first);
      seen.erase(live[i].first);
      live[i] = live.back();
      live.pop_back();
    } else {
      const SizeClass c = static_cast<SizeClass>(random() % 3 == 0 ? random() % kClasses : random() % 6);
      void* block = user.allocate(c);
      ASSERT_TRUE(seen.insert(block).second);
      ASSERT_EQ(usable_size(block_or_die(block)), block_size(c));
      live.emplace_back(block, c);
    }
  }
  test::expect_consistent();
  for (auto& [block, c] : live) user.release(block);
  test::expect_consistent();
}

TEST(Heap, TellsWhatItHasTouchedBeforeItTakesARun) {
  User user;
  constexpr SizeClass kClass = 3;
  const size_t before = page_heap.books.touched;
  uint32_t runs = 0;
  size_t handed_out = 0;
  for (size_t live = page_heap.books.live; runs < 16;) {
    user.allocate(kClass);
    if (page_heap.books.live != live) {  // it has taken a run, and some others with it
      EXPECT_GE(page_heap.books.touched - before, handed_out);
      live = page_heap.books.live;
      ++runs;
    }
    handed_out += block_size(kClass);
  }
}

// The blocks of a class that are made first come back in random order, turn by turn: how many of those handed out in
// each turn lie just behind the one before.
std::vector<uint32_t> neighbours_by_turn(SizeClass c, uint32_t turns, uint32_t* blocks) {
  User user;
  std::mt19937 random(5);
  std::vector<char*> live;
  std::vector<uint32_t> result;
  *blocks = 1;
  for (uint32_t turn = 0; turn <= turns; ++turn) {
    uint32_t neighbours = 0;
    for (uint32_t i = 0; i < *blocks; ++i) {
      live.push_back(static_cast<char*>(user.allocate(c)));
      *blocks = slab_of(live[0])->carved;
      neighbours += i > 0 && live[i] == live[i - 1] + block_size(c);
    }
    result.push_back(neighbours);
    std::shuffle(live.begin(), live.end(), random);
    for (char* block : live) user.release(block);
    live.clear();
  }
  return result;
}

TEST(Heap, NowAndThenALongListIsPutInOrder) {
  uint32_t blocks;
  const std::vector<uint32_t> neighbours = neighbours_by_turn(2, 2 * kTakesInOrder, &blocks);
  ASSERT_GE(blocks, kLongList);
  for (uint32_t turn = 0; turn < neighbours.size(); ++turn) {
    if (turn % kTakesInOrder == 0) {
      EXPECT_EQ(neighbours[turn], blocks - 1) << turn;  // the first ones are new
    } else {
      EXPECT_LT(neighbours[turn], blocks / 4) << turn;
    }
  }
}

TEST(Heap, AShortListStaysAsItIs) {
  uint32_t blocks;
  const std::vector<uint32_t> neighbours = neighbours_by_turn(21, 4 * kTakesInOrder, &blocks);
  ASSERT_LT(blocks, kLongList);
  for (uint32_t turn = 1; turn < neighbours.size(); ++turn) EXPECT_LT(neighbours[turn], blocks - 1) << turn;
}

TEST(Heap, ABlockThatWasWrittenToAfterItWasFreedIsFoundWhenItsListIsPutInOrder) {
  User user;
  constexpr SizeClass kClass = 2;
  std::vector<Block*> blocks;
  for (uint32_t i = 0; i < kLongList; ++i) blocks.push_back(static_cast<Block*>(user.allocate(kClass)));
  Slab* slab = slab_of(blocks[0]);
  for (Block* block : blocks) user.release(block);
  Block* const list = slab->free;
  ASSERT_NE(list, nullptr);
  Block* const second = list->next;
  for (uintptr_t wrong :
       {uintptr_t{16}, reinterpret_cast<uintptr_t>(second) + 8, reinterpret_cast<uintptr_t>(list) + kGranule}) {
    EXPECT_DEATH(
        {
          second->next = reinterpret_cast<Block*>(wrong);
          in_order(slab, list);
        },
        "written to after it was freed");
  }
  EXPECT_DEATH(
      {
        second->next = list;
        in_order(slab, list);
      },
      "freed twice");
}

TEST(Heap, AnEmptySlabServesTheNextOneOfItsLength) {
  User user;
  constexpr SizeClass kClass = 3;
  std::vector<void*> blocks;
  for (uint32_t i = 0; i < 3 * slab_capacity(kClass); ++i) blocks.push_back(user.allocate(kClass));
  Slab* slab = slab_of(blocks.front());
  const uint64_t key = slab->key;
  const size_t live = page_heap.books.live;
  const size_t dirty = page_heap.books.dirty;
  for (uint32_t i = 0; i < slab_capacity(kClass); ++i) user.release(blocks[i]);
  EXPECT_EQ(page_heap.books.live, live);  // it waits in the heap's cache
  EXPECT_EQ(page_heap.books.dirty, dirty);
  EXPECT_DEATH(user.release(blocks.front()), "no allocated block");
  test::expect_consistent();
  // The first of another class is of clean memory, the second is that one.
  std::vector<void*> others;
  for (uint32_t i = 0; i <= slab_capacity(kClass + 1); ++i) others.push_back(user.allocate(kClass + 1));
  Slab* first = slab_of(others.front());
  EXPECT_NE(first, slab);
  EXPECT_TRUE(first->fresh);
  EXPECT_EQ(slab_of(others.back()), slab);
  EXPECT_EQ(usable_size(slab), block_size(kClass + 1));
  EXPECT_NE(slab->key, key);
  test::expect_consistent();
  for (void* other : others) user.release(other);
  for (size_t i = slab_capacity(kClass); i < blocks.size(); ++i) user.release(blocks[i]);
}

void leave_dirty(uint32_t granules) { page_heap.give_span(test::take_span(granules)); }

// What is dirty is used before clean runs that wait, but not by a class's first slab.
TEST(Heap, TakesDirtyMemoryBeforeCleanButForAClassesFirstSlab) {
  User user;
  constexpr SizeClass kClass = 3;
  std::vector<void*> blocks;
  for (uint32_t i = 0; i < 3 * slab_capacity(kClass); ++i) blocks.push_back(user.allocate(kClass));
  page_heap.trim();
  leave_dirty(1);
  ASSERT_EQ(page_heap.books.dirty, kGranule);
  void* first = user.allocate(kClass + 1);
  EXPECT_TRUE(slab_of(first)->fresh);
  EXPECT_EQ(page_heap.books.dirty, kGranule);
  for (uint32_t i = 0; i < slab_capacity(kClass); ++i) blocks.push_back(user.allocate(kClass));
  EXPECT_FALSE(slab_of(blocks.back())->fresh);
  EXPECT_EQ(page_heap.books.dirty, 0u);
  user.release(first);
  for (void* block : blocks) user.release(block);
}

TEST(Heap, AFirstSlabIsOfDirtyMemoryWhereThatIsWorthAPurge) {
  User user;
  page_heap.trim();
  leave_dirty(commitment::kDirtySlack / kGranule);
  ASSERT_GE(page_heap.books.dirty, commitment::kDirtySlack);
  void* first = user.allocate(5);
  EXPECT_FALSE(slab_of(first)->fresh);
  user.release(first);
}

TEST(RunCache, HoldsAShareOfItsHeap) {
  RunCache cache;
  Slab runs[RunCache::kMost + 1] = {};
  EXPECT_TRUE(cache.push(&runs[0], 1, 1));
  EXPECT_FALSE(cache.push(&runs[1], 1, RunCache::kShare - 1));
  EXPECT_TRUE(cache.push(&runs[1], 1, RunCache::kShare));
  EXPECT_EQ(cache.pop(2), nullptr);
  for (uint32_t i = 2; i < RunCache::kMost; ++i) EXPECT_TRUE(cache.push(&runs[i], 1, 1u << 20));
  EXPECT_FALSE(cache.push(&runs[RunCache::kMost], 1, 1u << 20));  // however large the heap is
  EXPECT_EQ(cache.pop(1), &runs[RunCache::kMost - 1]);            // the last first
  uint32_t flushed = 0;
  cache.take_all([&](Slab*) { ++flushed; });
  EXPECT_EQ(flushed, RunCache::kMost - 1);
  EXPECT_EQ(cache.pop(1), nullptr);
}

// Another thread takes what waits while the holder takes and gives.
TEST(RunCache, AnyThreadTakesAll) {
  RunCache cache;
  constexpr uint32_t kRuns = 64;
  constexpr uint32_t kMany = 1u << 20;  // granules of the heap
  std::vector<Slab> runs(kRuns);
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::vector<Slab*> taken;  // in nobody's hands
  for (Slab& run : runs) taken.push_back(&run);
  std::thread other([&] {
    while (!ends) {
      cache.take_all([&](Slab* run) {
        const std::lock_guard guard(mutex);
        taken.push_back(run);
      });
    }
  });
  std::vector<Slab*> mine;
  std::mt19937 random(3);
  for (int step = 0; step < 200000; ++step) {
    if (mine.empty()) {
      const std::lock_guard guard(mutex);
      mine.swap(taken);
    }
    if (random() % 2 == 0 && !mine.empty()) {
      if (cache.push(mine.back(), 1, kMany)) mine.pop_back();
    } else if (Slab* run = cache.pop(1)) {
      mine.push_back(run);
    }
  }
  ends = true;
  other.join();
  cache.take_all([&](Slab* run) { taken.push_back(run); });
  mine.insert(mine.end(), taken.begin(), taken.end());
  EXPECT_EQ(mine.size(), kRuns);
  EXPECT_EQ(std::set<Slab*>(mine.begin(), mine.end()).size(), kRuns);
  for (uint32_t i = 0; i < RunCache::kMost; ++i) EXPECT_TRUE(cache.push(mine[i], 1, kMany)) << "the count is wrong";
}

TEST(Heap, EmptySlabsGoBackToTheArena) {
  // The vector allocates too, from the thread's own heap: its slabs are there after a first round.
  size_t before = 0;
  for (int round = 0; round < 2; ++round) {
    User user;
    for (SizeClass c : {SizeClass{0}, SizeClass{20}, SizeClass{55}, SizeClass{71}}) {
      std::vector<void*> blocks;
      for (uint32_t i = 0; i < 5 * slab_capacity(c); ++i) blocks.push_back(user.allocate(c));
      EXPECT_GE(page_heap.books.live, before + 5 * slab_granules(c) * kGranule);
      for (void* block : blocks) user.release(block);
    }
    user.heap.flush();
    if (round == 0) before = page_heap.books.live;
  }
  EXPECT_EQ(page_heap.books.live, before);
}

TEST(Heap, AFullSlabComesBackWithAFairShareOfItsBlocks) {
  User user;
  const SizeClass c = class_of(64);
  const uint32_t capacity = slab_capacity(c);
  std::vector<void*> blocks;
  for (uint32_t i = 0; i < 2 * capacity; ++i) blocks.push_back(user.allocate(c));
  Slab* first = slab_of(blocks[0]);
  ASSERT_EQ(first->state, SlabState::kFull);
  for (uint32_t i = 0; i < capacity / 8 - 1; ++i) user.release(blocks[i]);
  EXPECT_EQ(first->state, SlabState::kFull);
  user.release(blocks[capacity / 8 - 1]);
  EXPECT_EQ(first->state, SlabState::kPartial);
  EXPECT_EQ(first->countdown, capacity - capacity / 8);
  for (uint32_t i = capacity / 8; i < blocks.size(); ++i) user.release(blocks[i]);
}

TEST(Heap, AChainCountsAsItsBlocks) {
  User user;
  const SizeClass c = class_of(256);
  std::vector<void*> blocks;
  for (uint32_t i = 0; i < 2 * slab_capacity(c); ++i) blocks.push_back(user.allocate(c));
  Slab* slab = slab_of(blocks[0]);
  const uint32_t used = used_of(slab);
  Chain chain = {nullptr, static_cast<Block*>(blocks[0]), 100};
  for (int i = 0; i < 100; ++i) {
    Block* block = static_cast<Block*>(blocks[static_cast<size_t>(i)]);
    block->next = chain.first;
    chain.first = block;
  }
  user.heap.put_back(slab, chain);
  EXPECT_EQ(used_of(slab), used - 100);
  EXPECT_EQ(slab->state, SlabState::kPartial);
  for (size_t i = 100; i < blocks.size(); ++i) user.release(blocks[i]);
}

// More blocks come back than are out, as where the mark of a block freed twice has been overwritten: the countdown ends
// below zero.
TEST(Heap, OneFreeTooManyOfAnEmptySlabIsSeen) {
  User user;
  const SizeClass c = class_of(1024);
  std::vector<void*> blocks;
  do blocks.push_back(user.allocate(c));
  while (user.heap.free[c] != nullptr);
  for (void* block : blocks) user.release(block);
  Slab* slab = slab_of(blocks[0]);
  ASSERT_EQ(used_of(slab), 0u);
  EXPECT_DEATH(user.release(blocks[0]), "freed twice");
}

TEST(Heap, AChainOfMoreBlocksThanAreOutIsSeen) {
  User user;
  const SizeClass c = class_of(1024);
  Block* block = static_cast<Block*>(user.allocate(c));
  Slab* slab = slab_of(block);
  EXPECT_DEATH(user.heap.put_back(slab, Chain{block, block, used_of(slab) + 1}), "freed twice");
  user.release(block);
}

TEST(Heap, BlocksAreMarkedUnlessInUse) {
  User user;
  const SizeClass c = class_of(48);
  void* block = user.allocate(c);
  const void* never_used = user.heap.free[c];
  const uint64_t key = slab_of(block)->key;
  EXPECT_TRUE(is_marked(key, never_used));
  static_cast<Block*>(block)->mark = 0;  // as malloc does
  EXPECT_EQ(live_block_or_die(block), block_or_die(block));
  user.release(block);
  EXPECT_TRUE(is_marked(key, block));
  EXPECT_DEATH(live_block_or_die(block), "freed twice");
  EXPECT_DEATH(live_block_or_die(never_used), "never allocated");
}

TEST(Heap, WhatWasNeverMadeIsNoBlock) {
  User user;
  const SizeClass c = class_of(48);
  char* block = static_cast<char*>(user.allocate(c));
  const Slab* slab = slab_of(block);
  const uint32_t last = slab_capacity(c) - 1;
  ASSERT_LT(slab->carved, slab_capacity(c));
  char* const start = start_of(slab);
  EXPECT_EQ(find_block_fast(start + (slab->carved - 1) * size_t{48}), slab);
  for (const size_t number : {size_t{slab->carved}, size_t{last}, size_t{last} + 1}) {  // the last: the slab's tail
    EXPECT_EQ(find_block_fast(start + number * 48), nullptr);
    EXPECT_STREQ(pointee_of(start + number * 48).problem, kNoBlock);
  }
  user.release(block);
}

TEST(Heap, FreshMemoryIsCarvedAPageAtATime) {
  User user;
  const SizeClass c = class_of(512);
  page_heap.trim();
  void* block = user.allocate(c);
  const Slab* slab = slab_of(block);
  EXPECT_LE(slab->carved * block_size(c), 16384u);
  user.release(block);
}

}  // namespace
}  // namespace annex
