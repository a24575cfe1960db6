// The program's pages: first touches, huge pages, what is given back, and how much was resident for how long.
#include "machine/pages.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace annex::sim {
namespace {

constexpr uint64_t kSmall = 4096;
constexpr uint64_t kHuge = 2 << 20;
constexpr Address kBase = Address{0x7f} << 36;  // aligned to 2 MiB

class PagesTest : public testing::Test {
 protected:
  static Machine machine_of(const char* policy) {
    Machine machine;
    machine.pages.huge_pages = policy;
    return machine;
  }
  static Fault touch(Pages& pages, Address address, Cycles at = 0) {
    return pages.touch(address, at, Origin::kProgram).fault;
  }
  Pages pages_{machine_of("madvise")};
};

TEST_F(PagesTest, TheFirstTouchFaults) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  EXPECT_EQ(pages_.mapped_bytes(), 10 * kSmall);
  EXPECT_FALSE(pages_.resident(kBase));
  EXPECT_EQ(touch(pages_, kBase + 5), Fault::kAnonymous);
  EXPECT_EQ(touch(pages_, kBase + 4095), Fault::kNone);
  EXPECT_EQ(touch(pages_, kBase + 4096), Fault::kAnonymous);
  EXPECT_EQ(pages_.resident_bytes(), 2 * kSmall);
  EXPECT_TRUE(pages_.resident(kBase));
}

TEST_F(PagesTest, WhatIsTouchedAheadFaultsAtWhoeverTouchesItFirst) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  pages_.touch_ahead(kBase, 0, Origin::kAllocator);
  pages_.touch_ahead(kBase + kSmall, 0, Origin::kAllocator);
  EXPECT_EQ(pages_.resident_bytes(), 2 * kSmall);
  EXPECT_EQ(pages_.touch_late(kBase).fault, Fault::kAnonymous);
  EXPECT_EQ(pages_.touch_late(kBase).fault, Fault::kNone);
  EXPECT_EQ(touch(pages_, kBase + kSmall), Fault::kAnonymous);
  EXPECT_EQ(touch(pages_, kBase + kSmall), Fault::kNone);
  EXPECT_EQ(pages_.resident_bytes(), 2 * kSmall);
}

TEST_F(PagesTest, WhatIsTouchedAheadAndGivenBackFaultsNoMore) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  pages_.touch_ahead(kBase, 0, Origin::kAllocator);
  pages_.drop(kBase, kBase + kSmall);
  EXPECT_EQ(pages_.touch_late(kBase).fault, Fault::kNone);
  EXPECT_EQ(pages_.resident_bytes(), 0u);
  EXPECT_EQ(touch(pages_, kBase), Fault::kAnonymous);
  EXPECT_EQ(touch(pages_, kBase), Fault::kNone);
}

TEST_F(PagesTest, AHugePageTouchedAheadFaultsOnce) {
  pages_.map(kBase, kBase + 2 * kHuge, PageKind::kAnonymous);
  pages_.advise_huge(kBase, kBase + 2 * kHuge, true);
  pages_.touch_ahead(kBase + 5 * kSmall, 0, Origin::kAllocator);
  EXPECT_EQ(pages_.touch_late(kBase + 9 * kSmall).fault, Fault::kHuge);
  EXPECT_EQ(pages_.touch_late(kBase + 5 * kSmall).fault, Fault::kNone);
}

TEST_F(PagesTest, WhatHardwareBacksFaultsNoMore) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  pages_.touch_ahead(kBase, 0, Origin::kAllocator);
  EXPECT_TRUE(pages_.back(kBase, 0, Origin::kAllocator));
  EXPECT_TRUE(pages_.back(kBase + kSmall, 0, Origin::kAllocator));  // that nobody has touched at all
  EXPECT_FALSE(pages_.back(kBase + kSmall, 0, Origin::kAllocator));
  EXPECT_EQ(touch(pages_, kBase), Fault::kNone);
  EXPECT_EQ(touch(pages_, kBase + kSmall), Fault::kNone);
  EXPECT_EQ(pages_.resident_bytes(), 2 * kSmall);
  EXPECT_EQ(pages_.statistics.faults[1][static_cast<size_t>(Fault::kAnonymous)], 0u);
  EXPECT_EQ(touch(pages_, kBase + 2 * kSmall), Fault::kAnonymous);
  EXPECT_FALSE(pages_.back(kBase + 2 * kSmall, 0, Origin::kAllocator));
}

TEST_F(PagesTest, HardwareBacksNoHugePagesAndNoFiles) {
  pages_.map(kBase, kBase + kHuge, PageKind::kAnonymous);
  pages_.advise_huge(kBase, kBase + kHuge, true);
  pages_.map(kBase + kHuge, kBase + 2 * kHuge, PageKind::kFile);
  EXPECT_FALSE(pages_.back(kBase, 0, Origin::kAllocator));
  EXPECT_FALSE(pages_.back(kBase + kHuge, 0, Origin::kAllocator));
  EXPECT_EQ(touch(pages_, kBase), Fault::kHuge);
  EXPECT_EQ(touch(pages_, kBase + kHuge), Fault::kFile);
}

TEST_F(PagesTest, FaultsByKind) {
  pages_.map(kBase, kBase + kHuge, PageKind::kFile);
  pages_.map(kBase + kHuge, kBase + 2 * kHuge, PageKind::kAnonymous);
  EXPECT_EQ(touch(pages_, kBase), Fault::kFile);
  EXPECT_EQ(touch(pages_, kBase + kHuge), Fault::kAnonymous);
  EXPECT_EQ(touch(pages_, 0x400000), Fault::kFile);  // in no region
  EXPECT_EQ(touch(pages_, 0x400000), Fault::kNone);
  EXPECT_EQ(pages_.touch(kBase + kSmall, 0, Origin::kAllocator).fault, Fault::kFile);
  EXPECT_EQ(pages_.statistics.faults[0][static_cast<size_t>(Fault::kFile)], 2u);
  EXPECT_EQ(pages_.statistics.faults[0][static_cast<size_t>(Fault::kAnonymous)], 1u);
  EXPECT_EQ(pages_.statistics.faults[1][static_cast<size_t>(Fault::kFile)], 1u);
}

TEST_F(PagesTest, AdvisedMemoryGetsHugePages) {
  pages_.map(kBase + kSmall, kBase + 3 * kHuge, PageKind::kAnonymous);
  EXPECT_EQ(touch(pages_, kBase + kHuge), Fault::kAnonymous);  // not advised yet
  pages_.advise_huge(kBase, kBase + 3 * kHuge, true);
  EXPECT_EQ(touch(pages_, kBase + kHuge + kSmall), Fault::kAnonymous);  // a part is resident
  EXPECT_EQ(touch(pages_, kBase + kSmall), Fault::kAnonymous);          // the region lacks the first page
  const Pages::Touched touched = pages_.touch(kBase + 2 * kHuge + 12345, 0, Origin::kProgram);
  EXPECT_EQ(touched.fault, Fault::kHuge);
  EXPECT_TRUE(touched.huge);
  EXPECT_TRUE(pages_.touch(kBase + 2 * kHuge, 0, Origin::kProgram).huge);
  EXPECT_EQ(pages_.resident_bytes(), kHuge + 3 * kSmall);
}

TEST_F(PagesTest, ThePolicyDecides) {
  Pages always(machine_of("always"));
  Pages never(machine_of("never"));
  for (Pages* pages : {&always, &never}) {
    pages->map(kBase, kBase + 4 * kHuge, PageKind::kAnonymous);
    pages->advise_huge(kBase, kBase + kHuge, true);
    pages->advise_huge(kBase + kHuge, kBase + 2 * kHuge, false);
  }
  EXPECT_EQ(touch(always, kBase), Fault::kHuge);
  EXPECT_EQ(touch(always, kBase + kHuge), Fault::kAnonymous);
  EXPECT_EQ(touch(always, kBase + 2 * kHuge), Fault::kHuge);
  EXPECT_EQ(touch(never, kBase), Fault::kAnonymous);
}

TEST_F(PagesTest, AlikeNeighboursAreOneRegion) {
  // In halves, as an allocator that grows does; and taking an advice back makes them alike again.
  Pages pages(machine_of("always"));
  pages.map(kBase + kHuge / 2, kBase + kHuge, PageKind::kAnonymous);
  pages.map(kBase, kBase + kHuge / 2, PageKind::kAnonymous);
  EXPECT_EQ(touch(pages, kBase), Fault::kHuge);
  pages.map(kBase + kHuge, kBase + 2 * kHuge, PageKind::kAnonymous);
  pages.advise_huge(kBase + kHuge, kBase + kHuge + kSmall, true);
  EXPECT_EQ(touch(pages, kBase + 2 * kHuge - 1), Fault::kAnonymous);  // two regions
  pages.drop(kBase + kHuge, kBase + 2 * kHuge);
  pages.advise_huge(kBase, kBase + 2 * kHuge, true);
  EXPECT_EQ(touch(pages, kBase + 2 * kHuge - 1), Fault::kHuge);
}

TEST_F(PagesTest, UnmappedPagesAreGone) {
  pages_.map(kBase, kBase + 100 * kSmall, PageKind::kAnonymous);
  for (Address page = 0; page < 100; page += 2) touch(pages_, kBase + page * kSmall);
  EXPECT_EQ(pages_.unmap(kBase + 10 * kSmall, kBase + 20 * kSmall), 5u);
  EXPECT_EQ(pages_.mapped_bytes(), 90 * kSmall);
  EXPECT_EQ(pages_.resident_bytes(), 45 * kSmall);
  EXPECT_EQ(touch(pages_, kBase + 12 * kSmall), Fault::kFile);  // in no region now
  EXPECT_EQ(touch(pages_, kBase + 21 * kSmall), Fault::kAnonymous);
  EXPECT_EQ(pages_.statistics.given_back, 5 * kSmall);
}

TEST_F(PagesTest, ResidentPagesOfARange) {
  pages_.map(kBase, kBase + 2 * kHuge, PageKind::kAnonymous);
  for (Address page = 0; page < 10; page += 2) touch(pages_, kBase + page * kSmall);
  EXPECT_EQ(pages_.resident_pages(kBase, kBase + 2 * kHuge), 5u);
  EXPECT_EQ(pages_.resident_pages(kBase + kSmall, kBase + 5 * kSmall), 2u);
  EXPECT_EQ(pages_.resident_pages(kBase, kBase), 0u);
  pages_.advise_huge(kBase + kHuge, kBase + 2 * kHuge, true);
  touch(pages_, kBase + kHuge);
  EXPECT_EQ(pages_.resident_pages(kBase, kBase + 2 * kHuge), 6u);
  EXPECT_EQ(pages_.resident_bytes(), kHuge + 5 * kSmall);
}

TEST_F(PagesTest, DroppedPagesFaultAgain) {
  pages_.map(kBase, kBase + 100 * kSmall, PageKind::kAnonymous);
  for (Address page = 0; page < 100; ++page) touch(pages_, kBase + page * kSmall);
  EXPECT_EQ(pages_.drop(kBase, kBase + 10 * kSmall), 10u);
  EXPECT_EQ(pages_.drop(kBase, kBase + 10 * kSmall), 0u);
  EXPECT_EQ(pages_.mapped_bytes(), 100 * kSmall);
  EXPECT_EQ(touch(pages_, kBase), Fault::kAnonymous);
  EXPECT_EQ(pages_.statistics.peak_resident, 100 * kSmall);
}

TEST_F(PagesTest, AHugePageGoesWholeOrIsSplit) {
  pages_.map(kBase, kBase + 2 * kHuge, PageKind::kAnonymous);
  pages_.advise_huge(kBase, kBase + 2 * kHuge, true);
  touch(pages_, kBase);
  touch(pages_, kBase + kHuge);
  EXPECT_EQ(pages_.drop(kBase, kBase + kHuge), 1u);
  EXPECT_EQ(pages_.resident_bytes(), kHuge);
  EXPECT_EQ(pages_.drop(kBase + kHuge, kBase + kHuge + 3 * kSmall), 3u);
  EXPECT_EQ(pages_.statistics.huge_splits, 1u);
  EXPECT_EQ(pages_.resident_bytes(), kHuge - 3 * kSmall);
  EXPECT_FALSE(pages_.touch(kBase + kHuge + 3 * kSmall, 0, Origin::kProgram).huge);
  EXPECT_EQ(touch(pages_, kBase + kHuge), Fault::kAnonymous);
}

TEST_F(PagesTest, MappingOverSomethingGivesItBack) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  touch(pages_, kBase);
  touch(pages_, kBase + 9 * kSmall);
  EXPECT_EQ(pages_.map(kBase, kBase + 5 * kSmall, PageKind::kFile), 1u);
  EXPECT_EQ(touch(pages_, kBase), Fault::kFile);
  EXPECT_EQ(touch(pages_, kBase + 9 * kSmall), Fault::kNone);
}

TEST_F(PagesTest, RemapMovesWhatIsResident) {
  const Address target = kBase + 64 * kHuge;
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  for (Address page = 0; page < 10; page += 3) touch(pages_, kBase + page * kSmall);  // 0, 3, 6, 9
  EXPECT_EQ(pages_.remap(kBase, 10 * kSmall, target + kSmall, 7 * kSmall), 1u);       // 9 is cut off
  EXPECT_EQ(pages_.resident_bytes(), 3 * kSmall);
  EXPECT_EQ(pages_.mapped_bytes(), 7 * kSmall);
  EXPECT_FALSE(pages_.resident(kBase));
  EXPECT_EQ(touch(pages_, target + 4 * kSmall), Fault::kNone);
  EXPECT_EQ(touch(pages_, target + 5 * kSmall), Fault::kAnonymous);
}

TEST_F(PagesTest, RemapGrowsAndShrinksInPlace) {
  pages_.map(kBase, kBase + 4 * kSmall, PageKind::kAnonymous);
  for (Address page = 0; page < 4; ++page) touch(pages_, kBase + page * kSmall);
  EXPECT_EQ(pages_.remap(kBase, 4 * kSmall, kBase, 8 * kSmall), 0u);
  EXPECT_EQ(pages_.mapped_bytes(), 8 * kSmall);
  EXPECT_EQ(touch(pages_, kBase + 7 * kSmall), Fault::kAnonymous);
  EXPECT_EQ(pages_.remap(kBase, 8 * kSmall, kBase, 2 * kSmall), 3u);
  EXPECT_EQ(pages_.mapped_bytes(), 2 * kSmall);
  EXPECT_EQ(pages_.resident_bytes(), 2 * kSmall);
}

TEST_F(PagesTest, RemapKeepsHugePagesWhereBothPlacesAreAligned) {
  pages_.map(kBase, kBase + 2 * kHuge, PageKind::kAnonymous);
  pages_.advise_huge(kBase, kBase + 2 * kHuge, true);
  touch(pages_, kBase);
  pages_.remap(kBase, 2 * kHuge, kBase + 8 * kHuge, 2 * kHuge);
  EXPECT_TRUE(pages_.touch(kBase + 8 * kHuge, 0, Origin::kProgram).huge);
  EXPECT_EQ(pages_.statistics.huge_splits, 0u);
  pages_.remap(kBase + 8 * kHuge, 2 * kHuge, kBase + kSmall, 2 * kHuge);
  EXPECT_EQ(pages_.statistics.huge_splits, 1u);
  EXPECT_EQ(pages_.resident_bytes(), kHuge);
  EXPECT_TRUE(pages_.resident(kBase + kSmall));
  EXPECT_TRUE(pages_.resident(kBase + kHuge));
  EXPECT_FALSE(pages_.resident(kBase));
}

TEST_F(PagesTest, TheMeanIsOverTime) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous, 0);
  touch(pages_, kBase, 1000);
  touch(pages_, kBase + kSmall, 3000);
  pages_.drop(kBase, kBase + 2 * kSmall, 4000);
  // 0 for 1,000, then 1 page for 2,000, 2 for 1,000, 0 for 4,000.
  EXPECT_DOUBLE_EQ(pages_.average_resident(8000), static_cast<double>(4 * kSmall) / 8);
  touch(pages_, kBase, 8000);
  pages_.reset_statistics(8000);
  EXPECT_EQ(pages_.statistics.peak_resident, kSmall);
  EXPECT_DOUBLE_EQ(pages_.average_resident(9000), static_cast<double>(kSmall));
}

TEST_F(PagesTest, AnEarlierTimeCountsAsTheLatest) {
  pages_.map(kBase, kBase + 10 * kSmall, PageKind::kAnonymous);
  touch(pages_, kBase, 1000);
  touch(pages_, kBase + kSmall, 500);
  EXPECT_DOUBLE_EQ(pages_.average_resident(2000), static_cast<double>(kSmall));
}

TEST_F(PagesTest, RandomCallsAgreeWithASetOfPages) {
  std::mt19937_64 random(4);
  std::set<Address> resident;
  std::set<Address> mapped;
  constexpr Address kPages = 3000;
  for (int i = 0; i < 10'000; ++i) {
    const Address from = random() % kPages;
    const Address to = std::min(from + random() % (i % 5 == 0 ? 2500 : 30), kPages);
    const Address first = kBase + from * kSmall;
    const Address last = kBase + to * kSmall;
    const auto give_back = [&] { resident.erase(resident.lower_bound(from), resident.lower_bound(to)); };
    switch (random() % 12) {
      case 0:
        pages_.map(first, last, PageKind::kAnonymous);
        give_back();
        for (Address page = from; page < to; ++page) mapped.insert(page);
        break;
      case 1:
        if (i % 10 != 0) break;
        pages_.unmap(first, last);
        give_back();
        for (Address page = from; page < to; ++page) mapped.erase(page);
        break;
      case 2:
        pages_.drop(first, last);
        give_back();
        break;
      case 3:
        pages_.advise_huge(first, last, random() % 3 != 0);
        break;
      default: {
        const Pages::Touched touched = pages_.touch(first, 0, Origin::kProgram);
        ASSERT_EQ(touched.fault == Fault::kNone, resident.count(from) == 1);
        if (touched.fault == Fault::kHuge) {
          for (Address page = from & ~Address{511}; page < (from & ~Address{511}) + 512; ++page) resident.insert(page);
        }
        resident.insert(from);
      }
    }
    ASSERT_EQ(pages_.resident_bytes(), resident.size() * kSmall) << "step " << i;
    ASSERT_EQ(pages_.mapped_bytes(), mapped.size() * kSmall) << "step " << i;
  }
  EXPECT_GT(pages_.statistics.faults[0][static_cast<size_t>(Fault::kHuge)], 0u);
}

TEST(AddressMap, AgreesWithStdMap) {
  std::mt19937_64 random(6);
  AddressMap<uint64_t> map;
  std::map<Address, uint64_t> reference;
  for (int i = 0; i < 20'000; ++i) {
    const Address key = random() % 8000;
    ++map.at(key);
    ++reference[key];
  }
  EXPECT_EQ(map.count(), reference.size());
  for (Address key = 0; key < 9000; ++key) {
    const uint64_t* value = map.find(key);
    ASSERT_EQ(value != nullptr, reference.count(key) == 1);
    if (value != nullptr) {
      EXPECT_EQ(*value, reference[key]);
    }
  }
}

}  // namespace
}  // namespace annex::sim
