// Holes: pages of slabs in use go back, what is in use stays as it is, and every block is handed out once.
#include "core/holes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "common/resident.h"
#include "consistency.h"
#include "core/block.h"
#include "core/heap.h"
#include "core/list_order.h"
#include "os/all_threads.h"
#include "os/options.h"
#include "runs.h"

namespace annex {
namespace {

// What a front end does with a heap.
struct User {
  Heap heap;
  char* allocate(SizeClass c) {
    Block* block = heap.free[c];
    if (block == nullptr) block = heap.refill(c);
    heap.free[c] = block->next;
    block->mark = 0;
    return reinterpret_cast<char*>(block);
  }
  void release(char* block) {
    heap.put_back(static_cast<Slab*>(live_block_or_die(block)), reinterpret_cast<Block*>(block));
  }
  size_t make_holes() {
    heap.flush();
    return heap.make_holes({});
  }
  ~User() { heap.flush(); }
};

Slab* slab_of(const void* block) { return as_slab(block_or_die(block)); }

constexpr size_t kPage = 4096;

// Slabs of the class, full; of each `every` blocks the first stays in use. The others, and those.
struct Sparse {
  Sparse(User* user, SizeClass c, uint32_t every) {
    for (uint32_t i = 0; i < 4 * slab_capacity(c); ++i) {
      char* const block = user->allocate(c);
      memset(block, 0x5A, block_size(c));
      (i % every == 0 ? kept : freed).push_back(block);
    }
    for (char* block : freed) user->release(block);
  }
  std::vector<char*> kept;
  std::vector<char*> freed;
};

TEST(Holes, PagesWithoutABlockInUseGoBack) {
  if (os::page_size() != kPage) GTEST_SKIP() << "pages of another size";
  User user;
  const SizeClass c = class_of(64);
  Sparse sparse(&user, c, 512);  // one in 32 KiB
  user.heap.give_runs();         // which tells what was touched
  const size_t touched = page_heap.books.touched;
  const size_t bytes = user.make_holes();
  EXPECT_GE(bytes, 4 * (kGranule - 3 * kPage));
  EXPECT_LE(page_heap.books.touched + bytes, touched + 64 * 64);  // less than a block for each of 64 pages
  std::set<uintptr_t> used;
  for (char* block : sparse.kept) {
    used.insert(reinterpret_cast<uintptr_t>(block) / kPage);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(block[i], 0x5A);
  }
  size_t resident = 0;
  for (char* block : sparse.freed) {
    if (used.count(reinterpret_cast<uintptr_t>(block) / kPage) == 0) resident += annex_test::is_resident(block);
  }
  EXPECT_EQ(resident, 0u);
  EXPECT_EQ(user.make_holes(), 0u);  // they have gone
  test::expect_consistent();
  for (char* block : sparse.kept) user.release(block);
}

TEST(Holes, ABlockInAHoleIsFreedAlready) {
  User user;
  Sparse sparse(&user, class_of(64), 512);
  ASSERT_GT(user.make_holes(), 0u);
  for (size_t i : {size_t{0}, sparse.freed.size() / 2, sparse.freed.size() - 1}) {
    EXPECT_DEATH(user.release(sparse.freed[i]), "freed twice");
  }
  EXPECT_DEATH(user.release(sparse.kept[1] + 16), "into a block");
  for (char* block : sparse.kept) user.release(block);
}

TEST(Holes, TheFastPathIsBackWhenAllAreFilled) {
  User user;
  const SizeClass c = class_of(64);
  Sparse sparse(&user, c, 512);
  ASSERT_GT(user.make_holes(), 0u);
  EXPECT_EQ(find_block_fast(sparse.kept[0]), nullptr);
  std::set<char*> seen(sparse.kept.begin(), sparse.kept.end());
  std::vector<char*> again;
  for (size_t i = 0; i < sparse.freed.size(); ++i) {
    again.push_back(user.allocate(c));
    ASSERT_TRUE(seen.insert(again.back()).second);
  }
  EXPECT_EQ(seen, [&] {
    std::set<char*> all(sparse.kept.begin(), sparse.kept.end());
    all.insert(sparse.freed.begin(), sparse.freed.end());
    return all;
  }());  // no other slab was needed
  for (char* block : seen) {
    EXPECT_EQ(find_block_fast(block), slab_of(block));
    EXPECT_EQ(slab_of(block)->in_holes, 0u);
  }
  for (char* block : seen) user.release(block);
}

// Each 16th long list of a slab is put in order (core/list_order.h), which knows blocks by the slab's limit.
TEST(Holes, ListsBesideThemAreTakenAnyNumberOfTimes) {
  User user;
  const SizeClass c = class_of(64);
  Sparse sparse(&user, c, 512);
  ASSERT_GT(user.make_holes(), 0u);
  std::vector<char*> blocks;
  for (uint32_t turn = 0; turn < 4 * kTakesInOrder; ++turn) {
    for (uint32_t i = 0; i < 2 * kLongList; ++i) blocks.push_back(user.allocate(c));
    for (char* block : blocks) user.release(block);
    blocks.clear();
  }
  for (char* block : sparse.kept) user.release(block);
}

TEST(Holes, AListThatWasWrittenToIsSeen) {
  User user;
  Sparse sparse(&user, class_of(64), 512);
  user.heap.flush();
  Slab* const slab = slab_of(sparse.kept[1]);
  ASSERT_NE(slab->free, nullptr);
  EXPECT_DEATH(
      {
        slab->free->next = reinterpret_cast<Block*>(uintptr_t{16});
        make_holes(slab);
      },
      "written to after it was freed");
  EXPECT_DEATH(
      {
        slab->free->next = slab->free;
        make_holes(slab);
      },
      "freed twice");
  for (char* block : sparse.kept) user.release(block);
}

// Takes and frees blocks of a class in any order; each keeps what was written into it.
template <class ItsUser>
struct Program {
  ItsUser user;
  SizeClass c;
  std::mt19937* random;
  struct Live {
    char* block;
    unsigned char pattern;
  };
  std::vector<Live> live = {};

  void fill(char* block) {
    const auto pattern = static_cast<unsigned char>((*random)());
    memset(block, pattern, block_size(c));
    live.push_back({block, pattern});
  }
  char* take_last() {
    char* const block = live.back().block;
    live.pop_back();
    return block;
  }
  void take_and_free() {
    const size_t wanted = (*random)() % (3 * slab_capacity(c)) + 3;
    while (live.size() < wanted) fill(user.allocate(c));
    std::shuffle(live.begin(), live.end(), *random);
    while (live.size() > std::max<size_t>(wanted / 16, 2)) user.release(take_last());
  }
  void expect_whole() {
    for (const Live& each : live) {
      for (size_t i = 0; i < block_size(c); i += 8)
        ASSERT_EQ(static_cast<unsigned char>(each.block[i]), each.pattern) << int{c};
    }
    test::expect_consistent();
  }
};

// Every class, blocks longer than a page and slabs of several granules among them. make_holes(program): the bytes.
template <class ItsUser, class MakeHoles>
void expect_whole_in_any_order(MakeHoles make_holes) {
  std::mt19937 random(17);
  for (SizeClass c = 0; c < kClasses; ++c) {
    Program<ItsUser> program = {.user = {}, .c = c, .random = &random};
    size_t bytes = 0;
    for (int phase = 0; phase < 12; ++phase) {
      program.take_and_free();
      bytes += make_holes(&program);
      program.expect_whole();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(bytes, 0u) << "class " << int{c};
    while (!program.live.empty()) program.user.release(program.take_last());
  }
}

TEST(Holes, AnyOrderOfAllocatingFreeingAndMakingHolesKeepsBlocksWhole) {
  expect_whole_in_any_order<User>([](Program<User>* program) { return program->user.make_holes(); });
}

// What the rest of a slab held before its blocks are made, or has from a huge page, goes back, once; the blocks that
// are made there later are whole.
TEST(Holes, ThePartWithoutBlocksGoesBack) {
  User user;
  const SizeClass c = class_of(1000);
  std::vector<char*> all;
  for (uint32_t i = 0; i < 8 * slab_capacity(c); ++i) all.push_back(user.allocate(c));
  for (char* block : all) {
    memset(block, 0x5A, block_size(c));
    user.release(block);
  }
  user.heap.flush();
  std::vector<char*> again;  // a first slab of clean memory, and another one of dirty memory
  for (uint32_t i = 0; i <= slab_capacity(c); ++i) again.push_back(user.allocate(c));
  Slab* const slab = slab_of(again.back());
  ASSERT_FALSE(slab->fresh);
  ASSERT_LT(slab->carved, slab_capacity(c));
  char* const rest = start_of(slab) + round_up<size_t>(slab->carved * block_size(c), kPage);
  memset(rest, 0x5A, kPage);
  EXPECT_GE(user.make_holes(), kPage);
  EXPECT_EQ(*rest, 0);
  *rest = 1;
  EXPECT_EQ(purge_uncarved(slab), 0u);
  EXPECT_EQ(*rest, 1);
  for (uint32_t i = 1; i < slab_capacity(c); ++i) {
    char* const block = user.allocate(c);
    memset(block, 0x5A, block_size(c));
    user.release(block);
  }
  for (char* block : again) user.release(block);
}

// A heap that goes on allocating, and in whose other slabs nothing changes, gives holes back by and by.
TEST(Holes, AreMadeBitByBit) {
  User user;
  const SizeClass c = class_of(1000);
  Sparse sparse(&user, c, 64);
  const auto holes = [&] {
    size_t count = 0;
    for (char* block : sparse.kept) count += slab_of(block)->holes != 0;
    return count;
  };
  user.heap.tidy();
  EXPECT_EQ(holes(), 0u);  // they have only just been seen
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  for (int i = 0; i < 4; ++i) user.heap.tidy();
  EXPECT_GT(holes(), 0u);
  for (char* block : sparse.kept) user.release(block);
}

// --- while the owner sleeps, anywhere in its fast paths --------------------------------------------------------------

// A thread that is put to sleep in the middle of a step, and goes on after its heap was taken and before it comes back.
struct Sleeper : User {
  struct Pop {
    SizeClass c;
    Block* block;
    Block* next;
  };
  Pop begin_pop(SizeClass c) { return {c, heap.free[c], next_of(heap.free[c])}; }
  char* end_pop(const Pop& pop) {
    heap.free[pop.c] = pop.next;
    return static_cast<char*>(unmarked(pop.block));
  }
  struct Free {
    Slab* slab;
    Block* block;
  };
  static Free begin_free(char* block) {
    const Free free = {slab_of(block), reinterpret_cast<Block*>(block)};
    set_next(free.block, free.slab->free);
    mark_free(free.slab->key, free.block);
    return free;
  }
  static void list(const Free& free) { free.slab->free = free.block; }
  // True where settle() has to follow, once the thread is back.
  static bool count(const Free& free) { return --free.slab->countdown == 0; }
  // Up to where the fast path ends.
  static bool end_free(const Free& free) {
    list(free);
    return count(free);
  }
  size_t is_taken() {
    EXPECT_TRUE(os::can_have_barriers());
    std::vector<HeldBlock> blocks;
    for (void*& place : held) {
      if (place != nullptr) blocks.push_back({static_cast<Block*>(place), &place});
    }
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
    const size_t bytes = heap.make_holes_aside(Which::kAll, {}, blocks);
    heap.give_runs();
    return bytes;
  }
  // Blocks that it has freed, and holds back.
  std::vector<void*> held;
  void let_go_of_held() {
    for (void*& place : held) {
      if (place != nullptr) release(static_cast<char*>(place));
    }
    held.clear();
  }
  ~Sleeper() { let_go_of_held(); }
};

// Of one slab: as many blocks as it has can be had, whatever came late.
class Late : public ::testing::Test {
 protected:
  static constexpr SizeClass kClass = class_of(64);
  const uint32_t capacity = slab_capacity(kClass);

  void SetUp() override {
    for (uint32_t i = 0; i < capacity; ++i) blocks.push_back(user.allocate(kClass));
    slab = slab_of(blocks[0]);
    for (uint32_t i = capacity; i-- > 0;) {
      if (i % 256 != 0) user.release(blocks[i]);
    }
    for (uint32_t i = 0; i < capacity; i += 256) kept.push_back(blocks[i]);
  }
  // All that the slab has can be had, beside those that are kept, and come back.
  void expect_all_others() {
    std::set<char*> seen(kept.begin(), kept.end());
    for (size_t i = kept.size(); i < capacity; ++i) {
      char* const block = user.allocate(kClass);
      ASSERT_EQ(slab_of(block), slab);
      ASSERT_TRUE(seen.insert(block).second);
    }
    EXPECT_EQ(slab->in_holes, 0u);
    for (char* block : seen) user.release(block);
    user.heap.flush();
    EXPECT_EQ(slab->carved, 0u);  // it was empty, and is none any more
  }

  Sleeper user;
  Slab* slab;
  std::vector<char*> blocks;
  std::vector<char*> kept;
};

TEST_F(Late, NothingIs) {
  EXPECT_GE(user.is_taken(), kGranule / 2);
  EXPECT_TRUE(slab->aside);
  user.heap.end_aside();
  EXPECT_FALSE(slab->aside);
  expect_all_others();
}

TEST_F(Late, AHeapThatIsTakenIsLookedAtAgain) {
  EXPECT_GE(user.is_taken(), kGranule / 2);
  EXPECT_EQ(user.is_taken(), 0u);
  user.heap.end_aside();
  expect_all_others();
}

TEST_F(Late, ABlockIsHandedOut) {
  user.release(user.allocate(kClass));  // the list is ready
  const auto pop = user.begin_pop(kClass);
  EXPECT_GE(user.is_taken(), kGranule / 2);
  kept.push_back(user.end_pop(pop));
  memset(kept.back(), 0x5A, 64);
  user.heap.end_aside();
  for (int i = 0; i < 64; ++i) ASSERT_EQ(kept.back()[i], 0x5A);
  EXPECT_EQ(used_of(slab), kept.size());
  expect_all_others();
}

TEST_F(Late, AReadyListStaysWhereItIsNotAskedFor) {
  user.release(user.allocate(kClass));
  EXPECT_GE(user.is_taken(), kGranule / 2);
  user.heap.end_aside();
  EXPECT_EQ(used_of(slab), kept.size() + 1);  // the list is that of one block
  expect_all_others();
}

TEST_F(Late, ABlockIsFreed) {
  const auto free = user.begin_free(kept.back());
  EXPECT_GE(user.is_taken(), kGranule / 2);
  EXPECT_FALSE(user.end_free(free));
  kept.pop_back();
  user.heap.end_aside();
  expect_all_others();
}

TEST_F(Late, TheLastBlockIsFreed) {
  while (kept.size() > 1) {
    user.release(kept.back());
    kept.pop_back();
  }
  // Its slab is not current any more.
  std::vector<char*> others;
  for (uint32_t i = 0; i < capacity; ++i) others.push_back(user.allocate(kClass));
  for (char* block : others) user.release(block);
  ASSERT_EQ(slab->state == SlabState::kCurrent, false);
  const auto free = user.begin_free(kept.back());
  user.is_taken();
  const bool ends = user.end_free(free);
  user.heap.end_aside();
  if (ends) user.heap.settle(slab, slab->used_after);
  test::expect_consistent();
}

// --- blocks that are held back

TEST_F(Late, WhatIsHeldBackGoesIntoHoles) {
  user.held = {blocks[256], blocks[512]};
  kept = {blocks[0], blocks[768]};
  const size_t bytes = user.is_taken();
  EXPECT_GE(bytes, kGranule - 3 * kPage);
  EXPECT_EQ(user.held, (std::vector<void*>{nullptr, nullptr}));
  user.heap.end_aside();
  EXPECT_EQ(used_of(slab), kept.size());
  expect_all_others();
}

TEST_F(Late, WhatIsHeldBackBesideABlockInUseStays) {
  char* beside = user.allocate(kClass);
  while (reinterpret_cast<uintptr_t>(beside) / kPage != reinterpret_cast<uintptr_t>(kept[1]) / kPage)
    beside = user.allocate(kClass);
  user.held = {beside};
  user.is_taken();
  EXPECT_EQ(user.held[0], beside);
  user.heap.end_aside();
  std::set<char*> seen;
  for (uint32_t i = used_of(slab); i < capacity; ++i) seen.insert(user.allocate(kClass));
  EXPECT_EQ(seen.count(beside), 0u);  // it is in no list
}

TEST_F(Late, ABlockIsFreedBesideWhatIsHeldBack) {
  user.held = {blocks[256], blocks[512]};
  kept = {blocks[0], blocks[768]};
  const auto free = user.begin_free(blocks[768]);
  user.is_taken();
  EXPECT_FALSE(user.end_free(free));
  kept.pop_back();
  user.heap.end_aside();
  EXPECT_EQ(used_of(slab), kept.size());
  expect_all_others();
}

TEST_F(Late, AnothersBlocksAreLeftAlone) {
  User other;
  char* const block = other.allocate(kClass);
  std::vector<char*> pages;
  for (uint32_t i = 0; i <= slab_capacity(class_of(4096)); ++i) pages.push_back(other.allocate(class_of(4096)));
  ASSERT_EQ(slab_of(pages[1])->state, SlabState::kFull);
  user.held = {block, pages[1], blocks[256]};
  kept.erase(kept.begin() + 1);
  EXPECT_GE(user.is_taken(), kGranule / 2);
  EXPECT_EQ(user.held, (std::vector<void*>{block, pages[1], nullptr}));
  user.heap.end_aside();
  EXPECT_EQ(used_of(slab), kept.size());
  user.held.clear();
  expect_all_others();
  other.release(block);
  for (char* page : pages) other.release(page);
}

TEST_F(Late, ASlabOfWhichEverythingElseIsFreeIsLetGoOf) {
  std::vector<char*> others;  // the slab is not current any more
  for (uint32_t i = 0; i < 2 * capacity; ++i) others.push_back(user.allocate(kClass));
  std::erase_if(others, [&](char* block) { return slab_of(block) == slab ? user.release(block), true : false; });
  ASSERT_EQ(slab->state, SlabState::kPartial);
  user.held.assign(kept.begin(), kept.end());
  user.is_taken();
  EXPECT_EQ(user.held, std::vector<void*>(kept.size(), nullptr));
  EXPECT_EQ(slab->carved == 0, os::kBarriersAreSeen);
  user.heap.end_aside();
  EXPECT_EQ(slab->carved, 0u);
  for (char* block : others) user.release(block);
  test::expect_consistent();
}

// Blocks of several pages, all of a slab: it is full, and in no list of the heap's.
class LateOfFull : public ::testing::Test {
 protected:
  static constexpr SizeClass kClass = class_of(4096);
  const uint32_t capacity = slab_capacity(kClass);

  void SetUp() override {
    for (uint32_t i = 0; i < capacity; ++i) blocks.push_back(user.allocate(kClass));
    another = user.allocate(kClass);
    slab = slab_of(blocks[0]);
    ASSERT_EQ(slab->state, SlabState::kFull);
  }
  void TearDown() override {
    user.release(another);
    test::expect_consistent();
  }
  // Of the slab, `used` blocks are: all others can be had, and come back.
  void expect_all_others(const std::set<char*>& used) {
    EXPECT_EQ(slab->state, SlabState::kPartial);
    EXPECT_EQ(used_of(slab), used.size());
    std::set<char*> seen = used;
    for (uint32_t i = 0; i < 2 * capacity && seen.size() < capacity; ++i) {
      char* const block = user.allocate(kClass);
      if (slab_of(block) == slab) {
        ASSERT_TRUE(seen.insert(block).second);
      } else {
        beside.push_back(block);
      }
    }
    EXPECT_EQ(seen.size(), capacity);
    EXPECT_EQ(slab->in_holes, 0u);
    for (char* block : seen) user.release(block);
    for (char* block : beside) user.release(block);
    user.heap.flush();
    EXPECT_EQ(slab->carved, 0u);
  }

  Sleeper user;
  Slab* slab;
  std::vector<char*> blocks;
  std::vector<char*> beside;
  char* another;
};

TEST_F(LateOfFull, WhatIsHeldBackGoesIntoHoles) {
  user.held.assign(blocks.begin() + 2, blocks.end());
  EXPECT_GE(user.is_taken(), (capacity - 2) * kPage);
  EXPECT_EQ(user.held, std::vector<void*>(capacity - 2, nullptr));
  EXPECT_EQ(user.is_taken(), 0u);
  user.heap.end_aside();
  expect_all_others({blocks[0], blocks[1]});
}

TEST_F(LateOfFull, AllOfItIsHeldBack) {
  user.held.assign(blocks.begin(), blocks.end());
  user.is_taken();
  EXPECT_EQ(slab->carved == 0, os::kBarriersAreSeen);
  user.heap.end_aside();
  EXPECT_EQ(slab->carved, 0u);
}

// Of one free that is under way, everything else being held back: it is in the list and not counted, or counted and not
// in the list, or both and has yet to settle the slab, which is touched again in each case.
TEST_F(LateOfFull, TheLastIsInTheList) {
  ASSERT_GT(fair_share(capacity), 1u);
  user.held.assign(blocks.begin() + 1, blocks.end());
  const auto free = user.begin_free(blocks[0]);
  user.list(free);
  user.is_taken();
  ASSERT_FALSE(user.count(free));
  EXPECT_GT(slab->carved, 0u);
  user.heap.end_aside();
  EXPECT_EQ(slab->carved, 0u);
}
TEST_F(LateOfFull, TheLastIsCounted) {
  user.held.assign(blocks.begin() + 1, blocks.end());
  const auto free = user.begin_free(blocks[0]);
  ASSERT_FALSE(user.count(free));
  user.is_taken();
  user.list(free);
  EXPECT_GT(slab->carved, 0u);
  user.heap.end_aside();
  EXPECT_EQ(slab->carved, 0u);
}
TEST_F(LateOfFull, TheLastIsInTheListAndCounted) {
  user.held.assign(blocks.begin() + 1, blocks.end());
  const auto free = user.begin_free(blocks[0]);
  ASSERT_FALSE(user.end_free(free));
  user.is_taken();
  EXPECT_EQ(slab->carved == 0, os::kBarriersAreSeen);
  user.heap.end_aside();
  EXPECT_EQ(slab->carved, 0u);
}
TEST_F(LateOfFull, TheLastOfAFairShareIsInTheListAndCounted) {
  const uint32_t share = fair_share(capacity);
  for (uint32_t i = 1; i < share; ++i) user.release(blocks[i]);
  user.held.assign(blocks.begin() + share, blocks.end());
  const auto free = user.begin_free(blocks[0]);
  ASSERT_TRUE(user.end_free(free));
  user.is_taken();
  EXPECT_GT(slab->carved, 0u);
  user.heap.end_aside();
  user.heap.settle(slab, slab->used_after);
  EXPECT_EQ(slab->carved, 0u);
}

// The free that counts the slab down to where it would be partial is under way.
TEST_F(LateOfFull, AFairShareIsFree) {
  const uint32_t share = fair_share(capacity);
  for (uint32_t i = 1; i < share; ++i) user.release(blocks[i]);
  ASSERT_EQ(slab->countdown, 1u);
  user.held.assign(blocks.begin() + share, blocks.end() - 1);
  const auto free = user.begin_free(blocks[0]);
  EXPECT_GE(user.is_taken(), (capacity - share - 1) * kPage);
  ASSERT_TRUE(user.end_free(free));
  user.heap.end_aside();
  user.heap.settle(slab, slab->used_after);
  expect_all_others({blocks[capacity - 1]});
}

// The same, and the others are held back.
TEST_F(LateOfFull, AFairShareIsFreeAndNothingElseIsInUse) {
  const uint32_t share = fair_share(capacity);
  for (uint32_t i = 1; i < share; ++i) user.release(blocks[i]);
  user.held.assign(blocks.begin() + share, blocks.end());
  const auto free = user.begin_free(blocks[0]);
  EXPECT_GE(user.is_taken(), (capacity - share) * kPage);
  ASSERT_TRUE(user.end_free(free));
  user.heap.end_aside();
  EXPECT_GT(slab->carved, 0u);  // settle() lets go of it
  user.heap.settle(slab, slab->used_after);
  EXPECT_EQ(slab->carved, 0u);
}

// What was given back, and has been filled since, is given back again, though as many blocks are in use as then.
TEST_F(Late, NothingIsTheSecondTimeEither) {
  const size_t bytes = user.is_taken();
  user.heap.end_aside();
  for (size_t i = kept.size(); i < capacity; ++i) {
    blocks[i] = user.allocate(kClass);
    memset(blocks[i], 1, 64);
  }
  for (size_t i = kept.size(); i < capacity; ++i) user.release(blocks[i]);
  EXPECT_GE(user.is_taken(), bytes - 2 * kPage);
  user.heap.end_aside();
  expect_all_others();
}

TEST(HolesAside, WhatASearchWasStoppedBeforeIsFoundByTheNext) {
  ASSERT_TRUE(os::can_have_barriers());
  Sleeper user;
  Sparse sparse(&user, class_of(1000), 32);
  const size_t first = user.heap.make_holes_aside(Which::kPromising, {nullptr, [] { return true; }});
  const size_t rest = user.heap.make_holes_aside(Which::kPromising, {});
  EXPECT_GT(first, 0u);
  EXPECT_GT(rest, first);
  EXPECT_EQ(user.heap.make_holes_aside(Which::kPromising, {}), 0u);
  user.heap.end_aside();
  for (char* block : sparse.kept) user.release(block);
}

TEST(HolesAside, NoHugePagesAreAskedForAroundThem) {
  const auto before = os::options.huge_pages;
  os::options.huge_pages = os::HugePages::kAlways;
  {
    User user;
    const size_t huge = page_heap.books.huge;
    Sparse sparse(&user, class_of(64), 512);
    const size_t more = page_heap.books.huge - huge;
    ASSERT_GT(user.make_holes(), 0u);
    if (more > 0) {
      EXPECT_LT(page_heap.books.huge, huge + more);
    }
    for (char* block : sparse.kept) user.release(block);
  }
  os::options.huge_pages = before;
}

TEST(HolesAside, AnyOrderOfStepsKeepsBlocksWhole) {
  std::mt19937 random(18);
  expect_whole_in_any_order<Sleeper>([&](Program<Sleeper>* program) {
    Sleeper& user = program->user;
    const unsigned late = random() % 3;
    for (unsigned held = random() % 40; held > 0 && program->live.size() > 1; --held)
      user.held.push_back(program->take_last());
    size_t bytes;
    if (late == 1 && user.heap.free[program->c] != nullptr) {
      const auto pop = user.begin_pop(program->c);
      bytes = user.is_taken();
      program->fill(user.end_pop(pop));
      user.heap.end_aside();
    } else if (late == 2) {
      const auto free = user.begin_free(program->take_last());
      bytes = user.is_taken();
      const bool ends = user.end_free(free);
      user.heap.end_aside();
      if (ends) user.heap.settle(free.slab, free.slab->used_after);
    } else {
      bytes = user.is_taken();
      user.heap.end_aside();
    }
    if (random() % 2 == 0) user.let_go_of_held();
    return bytes;
  });
}

}  // namespace
}  // namespace annex
