// Holes: pages of slabs in use go back, what is in use stays as it is, and every block is handed out once.
#include "core/holes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "common/resident.h"
#include "consistency.h"
#include "core/block.h"
#include "core/heap.h"
#include "core/list_order.h"
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
    return heap.make_holes();
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

// Every class, blocks longer than a page and slabs of several granules among them.
TEST(Holes, AnyOrderOfAllocatingFreeingAndMakingHolesKeepsBlocksWhole) {
  std::mt19937 random(17);
  for (SizeClass c = 0; c < kClasses; ++c) {
    User user;
    struct Live {
      char* block;
      unsigned char pattern;
    };
    std::vector<Live> live;
    const size_t size = block_size(c);
    const size_t most = 3 * slab_capacity(c);
    size_t bytes = 0;
    for (int phase = 0; phase < 8; ++phase) {
      const size_t wanted = random() % most;
      while (live.size() < wanted) {
        char* const block = user.allocate(c);
        const auto pattern = static_cast<unsigned char>(random());
        memset(block, pattern, size);
        live.push_back({block, pattern});
      }
      std::shuffle(live.begin(), live.end(), random);
      while (live.size() > std::max<size_t>(wanted / 16, 2)) {
        user.release(live.back().block);
        live.pop_back();
      }
      bytes += user.make_holes();
      for (const Live& each : live) {
        for (size_t i = 0; i < size; i += 8)
          ASSERT_EQ(static_cast<unsigned char>(each.block[i]), each.pattern) << int{c};
      }
      test::expect_consistent();
      if (HasFailure()) return;
    }
    EXPECT_GT(bytes, 0u) << "class " << int{c};
    for (const Live& each : live) user.release(each.block);
  }
}

}  // namespace
}  // namespace annex
