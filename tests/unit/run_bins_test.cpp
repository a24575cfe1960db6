// Free runs by length: what is found is long enough, and the shortest up to 32 granules.
#include "pages/run_bins.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace annex {
namespace {

TEST(RunBins, FindsNothingInNothing) {
  RunBins bins;
  EXPECT_EQ(bins.find(1), nullptr);
  EXPECT_EQ(bins.find(kLongestRun), nullptr);
}

TEST(RunBins, BinsGrowWithLength) {
  for (uint32_t length = 1; length < 100000; ++length) ASSERT_LE(run_bin(length), run_bin(length + 1));
}

TEST(RunBins, AgreesWithAModel) {
  std::mt19937 random(7);
  std::vector<FreeRun> runs(500);
  std::set<FreeRun*> inside;
  RunBins bins;
  for (int step = 0; step < 20000; ++step) {
    FreeRun* run = &runs[random() % runs.size()];
    if (inside.count(run) != 0) {
      bins.remove(run);
      inside.erase(run);
    } else {
      run->length = 1 + random() % (random() % 4 == 0 ? 5000 : 40);
      bins.insert(run);
      inside.insert(run);
    }
    const uint32_t wanted = 1 + random() % 64;
    uint32_t shortest = UINT32_MAX;
    for (const FreeRun* each : inside) {
      if (each->length >= wanted) shortest = std::min(shortest, each->length);
    }
    const FreeRun* found = bins.find(wanted);
    if (shortest == UINT32_MAX) {
      ASSERT_EQ(found, nullptr);
    } else if (wanted <= kExactBins && shortest <= kExactBins) {
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->length, shortest);
    } else if (found != nullptr) {
      ASSERT_GE(found->length, wanted);
    } else {
      // A bin of several lengths is searched only so far, but whole bins above it are never missed.
      ASSERT_EQ(run_bin(shortest), run_bin(wanted));
    }
  }
}

}  // namespace
}  // namespace annex
