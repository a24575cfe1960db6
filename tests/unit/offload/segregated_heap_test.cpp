// The support core's heap: a block is out once, slabs come and go, a double free is seen.
#include "support/segregated_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "core/block.h"
#include "support/side_tables.h"

namespace annex::support {
namespace {

// A heap of the test's own.
struct User {
  SegregatedHeap& heap = *new SegregatedHeap;
  std::vector<void*> take(SizeClass c, uint32_t wanted) {
    std::vector<void*> blocks(wanted);
    uint32_t count = 0;
    while (count < wanted) {
      Batch batch;
      {
        os::Guard guard(heap.lock);
        batch = heap.take(c, wanted - count);
      }
      EXPECT_GE(batch.count(), 1u);
      EXPECT_LE(batch.count(), wanted - count);
      while (batch.mask != 0) count += spread(batch.split(c), c, blocks.data() + count);
    }
    blocks.resize(count);
    return blocks;
  }
  void put(void* block) { SegregatedHeap::put_back(&block, 1); }
  ~User() {
    {
      os::Guard guard(heap.lock);
      heap.flush();
    }
    delete &heap;
  }
};

TEST(SegregatedHeap, NoBlockIsOutTwice) {
  User user;
  std::mt19937 random(5);
  std::vector<std::pair<void*, SizeClass>> out;
  std::set<void*> seen;
  for (int step = 0; step < 4000; ++step) {
    const SizeClass c = static_cast<SizeClass>(random() % 3 == 0 ? random() % kClasses : random() % 6);
    for (void* block : user.take(c, 1 + random() % 60)) {
      ASSERT_TRUE(seen.insert(block).second);
      ASSERT_EQ(usable_size(block_or_die(block)), block_size(c));
      out.emplace_back(block, c);
    }
    for (size_t i = random() % 70; i > 0 && !out.empty(); --i) {
      const size_t which = random() % out.size();
      user.put(out[which].first);
      seen.erase(out[which].first);
      out[which] = out.back();
      out.pop_back();
    }
  }
  for (auto& [block, c] : out) user.put(block);
}

// As experiments/segregated.h calls it, which has it to itself.
TEST(SegregatedHeap, ABlockAtATimeIsOutOnceAndHoldsWhatWasWritten) {
  User user;
  std::mt19937 random(7);
  std::vector<std::pair<unsigned char*, SizeClass>> out;
  const auto take = [&](SizeClass c) {
    void* const block = user.heap.take_one(c);
    return static_cast<unsigned char*>(block != nullptr ? block : user.heap.take_or_carve(c));
  };
  for (int step = 0; step < 20'000; ++step) {
    if (out.size() < 3000 && random() % 5 < 3) {
      const SizeClass c = static_cast<SizeClass>(random() % 8 == 0 ? random() % kClasses : random() % 6);
      unsigned char* const block = take(c);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(usable_size(block_or_die(block)), block_size(c));
      ASSERT_FALSE(SegregatedHeap::is_free(as_slab(block_or_die(block)), block));
      memset(block, step % 251, block_size(c));
      out.emplace_back(block, c);
    } else if (!out.empty()) {
      auto& which = out[random() % out.size()];
      const auto [block, c] = which;
      for (size_t i = 1; i < block_size(c); ++i) ASSERT_EQ(block[i], block[0]);
      if (!user.heap.put_one(block)) user.put(block);
      for (size_t i = 1; i < block_size(c) && slab_granules(c) == 1; ++i) ASSERT_EQ(block[i], block[0]);
      which = out.back();
      out.pop_back();
    }
  }
  for (const auto& [block, c] : out) user.put(block);
}

TEST(SegregatedHeapDeathTest, ABlockThatIsPutBackTwiceEndsTheProcess) {
  User user;
  void* const block = user.heap.take_or_carve(class_of(64));
  void* const other = user.heap.take_or_carve(class_of(64));
  ASSERT_TRUE(user.heap.put_one(block));
  EXPECT_DEATH(user.heap.put_one(block), "freed twice");
  EXPECT_FALSE(user.heap.put_one(static_cast<char*>(other) + 16));  // for put_back, which says what is wrong
  EXPECT_TRUE(user.heap.put_one(other));
}

TEST(SegregatedHeap, BlocksHoldNoLink) {
  User user;
  const SizeClass c = class_of(64);
  std::vector<void*> blocks = user.take(c, 500);
  for (void* block : blocks) memset(block, 0x5a, 64);
  for (void* block : blocks) user.put(block);
  for (void* block : user.take(c, 500)) {
    for (int i = 0; i < 64; ++i) ASSERT_EQ(static_cast<unsigned char*>(block)[i], 0x5a);
  }
}

TEST(SegregatedHeap, TheMapSaysWhichClassAPointerHas) {
  User user;
  for (SizeClass c = 0; c < kClasses; ++c) {
    std::vector<void*> blocks = user.take(c, slab_capacity(c) + 1);
    for (void* block : blocks) {
      const size_t offset = static_cast<size_t>(static_cast<char*>(block) - mapped.base);
      ASSERT_LT(offset, mapped.bytes);
      ASSERT_EQ(tag_in(mapped.map[offset / kGranule]), tag_of(c));
    }
    const size_t granule = static_cast<size_t>(static_cast<char*>(blocks[0]) - mapped.base) / kGranule;
    for (void* block : blocks) user.put(block);
    EXPECT_EQ(mapped.map[granule], 0);  // it was not the current slab any more
  }
}

TEST(SegregatedHeapDeathTest, SeesEveryDoubleFree) {
  User user;
  std::vector<void*> blocks = user.take(class_of(48), 10);
  for (void* block : blocks) user.put(block);
  EXPECT_DEATH(user.put(blocks[4]), "freed twice");
}

}  // namespace
}  // namespace annex::support
