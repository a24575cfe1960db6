// A thread's quarantine, and which of its blocks another thread may take out while a step of the thread's is under way.
#include "harden/quarantine.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

namespace annex::harden {
namespace {

using Words = std::array<uint64_t, sizeof(Quarantine) / sizeof(uint64_t)>;

// The blocks are never touched: any address will do that is none of the quarantine's numbers, which are small and in
// the lower half of a word; whatever is in the other half.
void* block_at(size_t number) { return reinterpret_cast<void*>(size_t{0x100'8000'0000} + number * 16); }

std::set<void*> all_in(Quarantine quarantine) {
  std::set<void*> blocks;
  quarantine.for_each_place([&](void*& place) {
    if (place == nullptr) return;
    EXPECT_TRUE(blocks.insert(place).second);
  });
  return blocks;
}

TEST(Quarantine, EachBlockLeavesOnce) {
  Quarantine quarantine;
  quarantine.start();
  std::set<void*> in;
  for (size_t i = 1; i <= 5000; ++i) {
    in.insert(block_at(i));
    void* const leaves = quarantine.exchange(block_at(i), std::array<size_t, 3>{64, 1000, 30000}[i % 3]);
    if (leaves == nullptr) continue;
    ASSERT_EQ(in.erase(leaves), 1u);
  }
  EXPECT_GE(in.size() + 8, Quarantine::kPlaces);  // an empty place may change places, too
  EXPECT_EQ(all_in(quarantine), in);
}

// What a step stores, by comparing: words of the quarantine. In whatever order it does, each set of them may have been
// stored when another thread looks, and the others are to come.
struct Step {
  Quarantine before;
  Quarantine after;
  std::vector<size_t> stores;
  std::set<void*> in_its_hands;  // the block that comes, the one that leaves, the one that is moved

  template <class Act>
  Step(const Quarantine& was, Act act) : before(was), after(was) {
    act(&after);
    const Words from = std::bit_cast<Words>(before);
    const Words to = std::bit_cast<Words>(after);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i]) continue;
      stores.push_back(i);
      for (uint64_t word : {from[i], to[i]}) in_its_hands.insert(std::bit_cast<void*>(word));
    }
  }
  Quarantine with(unsigned stored) const {
    Words words = std::bit_cast<Words>(before);
    for (size_t i = 0; i < stores.size(); ++i) {
      if (stored >> i & 1) words[stores[i]] = std::bit_cast<Words>(after)[stores[i]];
    }
    return std::bit_cast<Quarantine>(words);
  }
};

void expect_untouched(const Step& step) {
  const std::set<void*> in_before = all_in(step.before);
  for (unsigned stored = 0; stored < 1u << step.stores.size(); ++stored) {
    Quarantine seen = step.with(stored);
    const Words words = std::bit_cast<Words>(seen);
    const uint64_t* const start = reinterpret_cast<const uint64_t*>(&seen);
    size_t count = 0;
    size_t stored_to = 0;
    size_t in_hands = 0;
    seen.for_each_beside([&](void*& place) {
      ++count;
      const auto word = static_cast<size_t>(reinterpret_cast<const uint64_t*>(&place) - start);
      for (size_t store : step.stores) stored_to += word == store;
      for (void* block : step.in_its_hands) in_hands += place == block;
    });
    ASSERT_EQ(stored_to, 0u);
    ASSERT_EQ(in_hands, 0u);
    ASSERT_TRUE(words == std::bit_cast<Words>(seen));
    ASSERT_GE(count + 5, in_before.size());  // but for four places, and what leaves
  }
}

TEST(Quarantine, WhatAStepTouchesIsLeftAlone) {
  for (int turn = 0; turn < 3; ++turn) {
    Quarantine quarantine;
    quarantine.start();
    for (size_t i = 1; i <= 700; ++i) {
      const Step step(quarantine, [&](Quarantine* of) { of->exchange_small(block_at(i)); });
      expect_untouched(step);
      if (HasFailure()) return;
      quarantine = step.after;
      // What comes in on slow paths, and random numbers for other things, are in between.
      if (i % 5 == 0) quarantine.exchange(block_at(10000 + i), 1000);
      if (i % 7 == 0) quarantine.below(10);
    }
  }
}

TEST(Quarantine, ARandomNumberTouchesNoPlace) {
  Quarantine quarantine;
  quarantine.start();
  for (size_t i = 1; i <= 600; ++i) {
    quarantine.exchange(block_at(i), 64);
    const Step step(quarantine, [](Quarantine* of) { of->below(10); });
    EXPECT_EQ(step.stores.size(), 1u);
    expect_untouched(step);
    if (HasFailure()) return;
  }
}

TEST(Quarantine, OneThatHasNotStartedHasNothing) {
  Quarantine quarantine;
  quarantine.for_each_beside([](void*&) { ADD_FAILURE(); });
  const Step step(quarantine, [](Quarantine* of) {
    of->start();
    of->exchange_small(block_at(1));
  });
  expect_untouched(step);
}

// Emptied places are filled again; nothing leaves for the blocks that come into them.
TEST(Quarantine, PlacesThatWereEmptiedAreFilledAgain) {
  Quarantine quarantine;
  quarantine.start();
  for (size_t i = 1; i <= 2000; ++i) quarantine.exchange_small(block_at(i));
  size_t emptied = 0;
  quarantine.for_each_beside([&](void*& place) {
    place = nullptr;
    ++emptied;
  });
  EXPECT_GE(emptied, 252u);
  std::set<void*> in = all_in(quarantine);
  EXPECT_EQ(in.size(), 256 - emptied);
  for (size_t i = 3001; i <= 5000; ++i) {
    in.insert(block_at(i));
    void* const leaves = quarantine.exchange_small(block_at(i));
    if (leaves == nullptr) continue;
    ASSERT_EQ(in.erase(leaves), 1u);
  }
  EXPECT_EQ(all_in(quarantine), in);
  EXPECT_GE(in.size(), 250u);
}

}  // namespace
}  // namespace annex::harden
