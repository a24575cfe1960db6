// One cache against a naive least-recently-used reference; the rules of arrival times and of outstanding misses.
#include "machine/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>

namespace annex::sim {
namespace {

// A list for each set, the most recently used line first.
class Reference {
 public:
  Reference(uint64_t sets, uint32_t ways) : sets_(sets), ways_(ways) {}

  bool access(Address line) {
    std::list<Address>& set = lines_[line % sets_];
    const auto found = std::find(set.begin(), set.end(), line);
    const bool hit = found != set.end();
    if (hit) set.erase(found);
    set.push_front(line);
    if (set.size() > ways_) set.pop_back();
    return hit;
  }
  void remove(Address line) { lines_[line % sets_].remove(line); }

 private:
  uint64_t sets_;
  uint32_t ways_;
  std::map<uint64_t, std::list<Address>> lines_;
};

bool access(Cache& cache, Address line, Origin origin = Origin::kProgram) {
  if (const Slot slot = cache.find_noted(line); slot != kNoSlot) {
    EXPECT_EQ(slot, cache.find(line));
    cache.use(slot);
    return true;
  }
  if (const Slot slot = cache.find(line); slot != kNoSlot) {
    cache.use(slot);
    cache.note(slot);
    return true;
  }
  const Slot slot = cache.victim(line, origin);
  cache.place(slot, line);
  if (line % 3 != 0) cache.note(slot);  // whether it is noted must make no difference
  return false;
}

struct Shape {
  uint64_t sets;
  uint32_t ways;
};

class CacheShapes : public testing::TestWithParam<Shape> {
 protected:
  uint64_t lines() const { return GetParam().sets * GetParam().ways; }
  Cache cache_{CacheParameters{.bytes = lines() * 64, .ways = GetParam().ways}};
  Reference reference_{GetParam().sets, GetParam().ways};
};

TEST_P(CacheShapes, HitsWhatTheReferenceHitsOnRandomAccesses) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 50'000; ++i) {
    // Half of them in a part that fits, all in three times the capacity, at a high address.
    const Address line =
        (Address{0x7fff'ffff'ff} << 3) + random() % (random() % 2 == 0 ? lines() / 2 + 1 : lines() * 3);
    ASSERT_EQ(access(cache_, line), reference_.access(line)) << "access " << i;
  }
}

TEST_P(CacheShapes, HitsWhatTheReferenceHitsOnStrides) {
  for (const uint64_t stride : {1, 2, 3, 7, 64, 1000, 4096}) {
    for (uint64_t i = 0; i < 4 * lines() + 10; ++i) {
      const Address line = i * stride % (lines() + lines() / 4 + 1);
      ASSERT_EQ(access(cache_, line), reference_.access(line)) << "stride " << stride << ", access " << i;
    }
  }
}

TEST_P(CacheShapes, FillsWhatWasRemovedFirst) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const Address line = random() % (lines() * 2);
    ASSERT_EQ(access(cache_, line), reference_.access(line)) << "access " << i;
    const Address gone = random() % (lines() * 2);
    if (const Slot slot = cache_.find(gone); slot != kNoSlot) {
      cache_.remove(slot);
      EXPECT_EQ(cache_.find(gone), kNoSlot);
      EXPECT_EQ(cache_.find_noted(gone), kNoSlot);
    }
    reference_.remove(gone);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CacheShapes,
                         testing::Values(Shape{1, 1}, Shape{1, 16}, Shape{64, 1}, Shape{64, 8}, Shape{32, 3},
                                         Shape{512, 8}, Shape{2048, 16}, Shape{4, 64}));

// Parted by ways, where who brings a line depends on nothing but the line: two caches that know nothing of each other.
TEST(PartedCache, EachPartIsACacheOfItsWays) {
  for (const uint32_t own : {1u, 2u, 5u, 7u}) {
    Cache cache({.bytes = 16 * 8 * 64, .ways = 8, .allocator_ways = own});
    Reference program(16, 8 - own);
    Reference allocator(16, own);
    std::mt19937_64 random(13);
    for (int i = 0; i < 50'000; ++i) {
      const Address line = random() % 200;
      const Origin origin = line / 16 % 3 == 0 ? Origin::kAllocator : Origin::kProgram;
      Reference& part = origin == Origin::kAllocator ? allocator : program;
      ASSERT_EQ(access(cache, line, origin), part.access(line)) << own << " ways, access " << i;
    }
  }
}

TEST(PartedCache, ALineOfTheOtherPartIsFoundAndStaysThere) {
  Cache cache({.bytes = 2 * 64, .ways = 2, .allocator_ways = 1});
  EXPECT_FALSE(access(cache, 1, Origin::kAllocator));
  EXPECT_TRUE(access(cache, 1, Origin::kProgram));
  EXPECT_FALSE(access(cache, 2, Origin::kProgram));
  EXPECT_FALSE(access(cache, 3, Origin::kProgram));  // in place of 2, though 1 was used before it
  EXPECT_TRUE(access(cache, 1, Origin::kProgram));
  EXPECT_FALSE(access(cache, 4, Origin::kAllocator));
  EXPECT_FALSE(access(cache, 1, Origin::kProgram));
}

TEST(Cache, ClearForgetsAll) {
  Cache cache({.bytes = 4096, .ways = 4});
  access(cache, 5);
  ++cache.statistics.invalidations;
  cache.clear();
  EXPECT_EQ(cache.find(5), kNoSlot);
  EXPECT_EQ(cache.find_noted(5), kNoSlot);
  EXPECT_EQ(cache.statistics.invalidations, 0u);
}

TEST(Arrival, NobodyWaitsLongerThanTheFetchTook) {
  const Line line{.ready = 1200, .fetch_took = 200};  // asked for at 1000
  EXPECT_EQ(Cache::arrival(line, 1500), 1500u);       // long here
  EXPECT_EQ(Cache::arrival(line, 1000), 1200u);
  EXPECT_EQ(Cache::arrival(line, 1199), 1200u);
  EXPECT_EQ(Cache::arrival(line, 900), 1100u);  // asked before: as if it had fetched the line itself
}

// A miss that takes `takes` cycles: when it is done.
Cycles miss(Mshrs& mshrs, Cycles at, Cycles takes) {
  const Mshrs::Grant grant = mshrs.acquire(at);
  mshrs.hold(grant, grant.start + takes);
  return grant.start + takes;
}

TEST(Mshrs, BoundTheMissesThatAreOutstanding) {
  Mshrs mshrs(2);
  EXPECT_EQ(miss(mshrs, 100, 50), 150u);
  EXPECT_EQ(miss(mshrs, 101, 50), 151u);
  EXPECT_FALSE(mshrs.available(102));
  EXPECT_EQ(miss(mshrs, 102, 50), 200u);  // after the first
  EXPECT_EQ(miss(mshrs, 103, 50), 201u);  // after the second
  EXPECT_TRUE(mshrs.available(200));
  EXPECT_EQ(miss(mshrs, 300, 50), 350u);
}

TEST(Mshrs, FreeTheShortestFirst) {
  Mshrs mshrs(3);
  miss(mshrs, 0, 300);
  miss(mshrs, 0, 100);
  miss(mshrs, 0, 200);
  EXPECT_EQ(miss(mshrs, 10, 1), 101u);
  EXPECT_EQ(miss(mshrs, 150, 1), 151u);
}

TEST(Mshrs, MissesOfTheFutureDelayNoneOfThePast) {
  Mshrs mshrs(2);
  miss(mshrs, 1000, 100);
  miss(mshrs, 1000, 100);
  EXPECT_EQ(miss(mshrs, 500, 100), 600u);
}

TEST(Mshrs, NeverExceedTheirNumberInOrder) {
  std::mt19937_64 random(3);
  Mshrs mshrs(5);
  std::vector<std::pair<Cycles, Cycles>> misses;
  Cycles now = 0;
  for (int i = 0; i < 2000; ++i) {
    now += random() % 20;
    const Cycles takes = 30 + random() % 100;
    const Cycles done = miss(mshrs, now, takes);
    misses.emplace_back(done - takes, done);
  }
  for (const auto& [start, done] : misses) {
    const auto outstanding = std::count_if(
        misses.begin(), misses.end(), [start = start](const auto& m) { return m.first <= start && start < m.second; });
    EXPECT_LE(outstanding, 5);
  }
}

}  // namespace
}  // namespace annex::sim
