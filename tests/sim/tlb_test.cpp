// Translation buffers against a naive reference with pages of both sizes, and what shoot-downs remove.
#include "machine/tlb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>

namespace annex::sim {
namespace {

constexpr Address kSmallBytes = 4096;
constexpr Address kHugeBytes = 2 << 20;

// Sets of (page number, huge), the most recently used first.
class Reference {
 public:
  Reference(uint32_t sets, uint32_t ways) : sets_(sets), ways_(ways) {}

  bool access(Address address, bool huge) {
    const Entry entry{address / (huge ? kHugeBytes : kSmallBytes), huge};
    std::list<Entry>& set = entries_[entry.first % sets_];
    const auto found = std::find(set.begin(), set.end(), entry);
    const bool hit = found != set.end();
    if (hit) set.erase(found);
    set.push_front(entry);
    if (set.size() > ways_) set.pop_back();
    return hit;
  }
  size_t shoot_down(Address from, Address to) {
    size_t removed = 0;
    for (auto& [number, set] : entries_) {
      removed += set.remove_if([&](const Entry& entry) {
        const Address bytes = entry.second ? kHugeBytes : kSmallBytes;
        return entry.first * bytes < to && from < (entry.first + 1) * bytes;
      });
    }
    return removed;
  }

 private:
  using Entry = std::pair<Address, bool>;
  uint32_t sets_;
  uint32_t ways_;
  std::map<Address, std::list<Entry>> entries_;
};

bool access(Tlb& tlb, Address address, bool huge) {
  if (tlb.hit(address)) return true;
  const Tlb::Found found = tlb.search(address);
  if (found != Tlb::Found::kNo) {
    EXPECT_EQ(found == Tlb::Found::kHuge, huge);
    return true;
  }
  tlb.insert(address, huge);
  return false;
}

struct Shape {
  uint32_t sets;
  uint32_t ways;
};

class TlbShapes : public testing::TestWithParam<Shape> {
 protected:
  uint32_t entries() const { return GetParam().sets * GetParam().ways; }
  Tlb tlb_{TlbParameters{.entries = entries(), .ways = GetParam().ways}};
  Reference reference_{GetParam().sets, GetParam().ways};
};

TEST_P(TlbShapes, HitsWhatTheReferenceHits) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50'000; ++i) {
    const Address address = random() % (random() % 2 == 0 ? entries() / 2 + 1 : entries() * 3) * kSmallBytes + i % 4096;
    ASSERT_EQ(access(tlb_, address, false), reference_.access(address, false)) << "access " << i;
  }
}

TEST_P(TlbShapes, HitsWhatTheReferenceHitsWithBothSizes) {
  std::mt19937_64 random(5);
  const Address first_huge = Address{1} << 40;
  for (int i = 0; i < 50'000; ++i) {
    const bool huge = random() % 3 == 0;
    const Address address =
        (huge ? first_huge : 0) + random() % (Address{entries()} * (huge ? kHugeBytes : kSmallBytes));
    ASSERT_EQ(access(tlb_, address, huge), reference_.access(address, huge)) << "access " << i;
  }
}

TEST_P(TlbShapes, ShootDownsRemoveWhatTheRangeTouches) {
  for (const bool with_huge : {false, true}) {
    std::mt19937_64 random(9);
    uint64_t removed = tlb_.statistics.shot_down;
    for (int i = 0; i < 20'000; ++i) {
      const bool huge = with_huge && random() % 3 == 0;
      const Address address = (huge ? 64 * kHugeBytes : 0) + random() % (16 * kHugeBytes);
      ASSERT_EQ(access(tlb_, address, huge), reference_.access(address, huge)) << "access " << i;
      if (i % 10 != 0) continue;
      const Address from = random() % (128 * kHugeBytes) / kSmallBytes * kSmallBytes;
      const Address to = from + random() % (i % 20 == 0 ? 8 * kSmallBytes : 4 * kHugeBytes);
      tlb_.shoot_down(from, to);
      removed += reference_.shoot_down(from, to);
      ASSERT_EQ(tlb_.statistics.shot_down, removed);
    }
    const uint64_t before = tlb_.statistics.shot_down;
    tlb_.clear();
    reference_ = Reference{GetParam().sets, GetParam().ways};
    EXPECT_GT(before, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TlbShapes, testing::Values(Shape{1, 1}, Shape{1, 64}, Shape{16, 4}, Shape{128, 12}));

TEST(Tlb, AHugePageIsOneEntry) {
  Tlb tlb({.entries = 16, .ways = 4});
  EXPECT_FALSE(access(tlb, 5 * kHugeBytes, true));
  for (Address offset = 0; offset < kHugeBytes; offset += kSmallBytes)
    EXPECT_TRUE(tlb.search(5 * kHugeBytes + offset) == Tlb::Found::kHuge);
  tlb.shoot_down(5 * kHugeBytes + 3 * kSmallBytes, 5 * kHugeBytes + 4 * kSmallBytes);
  EXPECT_FALSE(tlb.hit(5 * kHugeBytes));
  EXPECT_EQ(tlb.search(5 * kHugeBytes), Tlb::Found::kNo);
}

TEST(Tlb, AnEmptyRangeRemovesNothing) {
  Tlb tlb({.entries = 16, .ways = 4});
  access(tlb, 0, false);
  tlb.shoot_down(0, 0);
  EXPECT_TRUE(tlb.hit(0));
}

}  // namespace
}  // namespace annex::sim
