// Predictors on patterns whose best possible prediction is known.
#include "machine/predictor.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

namespace annex::sim {
namespace {

constexpr Address kBranch = 0x401234;

PredictorParameters parameters(const std::string& kind) {
  PredictorParameters parameters;
  parameters.kind = kind;
  return parameters;
}

// Wrong predictions in percent, of those after the first 5000.
double wrong(const std::string& kind, const std::function<bool(unsigned)>& taken) {
  Predictor predictor(parameters(kind));
  unsigned count = 0;
  for (unsigned i = 0; i < 25000; ++i) {
    const bool right = predictor.conditional(kBranch, taken(i));
    if (i >= 5000) count += !right;
  }
  return count / 200.0;
}

TEST(Predictor, AlwaysAndNever) {
  for (const char* kind : {"perfect", "bimodal", "gshare", "tage"}) {
    EXPECT_EQ(wrong(kind, [](unsigned) { return true; }), 0) << kind;
    EXPECT_EQ(wrong(kind, [](unsigned) { return false; }), 0) << kind;
  }
}

TEST(Predictor, AlternatingNeedsHistory) {
  const auto taken = [](unsigned i) { return i % 2 == 0; };
  EXPECT_GT(wrong("bimodal", taken), 40);
  EXPECT_EQ(wrong("gshare", taken), 0);
  EXPECT_LT(wrong("tage", taken), 0.1);
}

TEST(Predictor, LoopsNeedAHistoryAsLong) {
  const auto loop = [](unsigned n) { return [n](unsigned i) { return i % n != n - 1; }; };
  EXPECT_NEAR(wrong("bimodal", loop(10)), 10, 0.5);
  EXPECT_LT(wrong("gshare", loop(10)), 0.1);
  EXPECT_LT(wrong("tage", loop(10)), 0.1);
  EXPECT_NEAR(wrong("gshare", loop(40)), 2.5, 0.5);  // its history is as long as its index: 13
  EXPECT_LT(wrong("tage", loop(40)), 0.3);
  EXPECT_NEAR(wrong("tage", loop(200)), 0.5, 0.3);  // longer than 64
}

TEST(Predictor, RandomIsRandom) {
  for (const char* kind : {"bimodal", "gshare", "tage"}) {
    std::mt19937_64 random(1);
    EXPECT_NEAR(wrong(kind, [&](unsigned) { return (random() & 1) != 0; }), 50, 2) << kind;
  }
  std::mt19937_64 random(1);
  EXPECT_EQ(wrong("perfect", [&](unsigned) { return (random() & 1) != 0; }), 0);
}

TEST(Predictor, ABiasIsUsed) {
  std::mt19937_64 random(1);
  const auto taken = [&](unsigned) { return random() % 10 != 0; };
  EXPECT_NEAR(wrong("bimodal", taken), 11, 3);
  EXPECT_NEAR(wrong("tage", taken), 11, 4);
}

TEST(Predictor, OtherBranchesOutcomesAreHistory) {
  // The second branch goes as two random ones before it went, differently.
  const auto wrong_second = [](const std::string& kind) {
    Predictor predictor(parameters(kind));
    std::mt19937_64 random(1);
    unsigned count = 0;
    for (unsigned i = 0; i < 20000; ++i) {
      const bool first = (random() & 1) != 0;
      const bool second = (random() & 1) != 0;
      predictor.conditional(0x400010, first);
      predictor.conditional(0x400020, second);
      const bool right = predictor.conditional(0x400030, first != second);
      if (i >= 10000) count += !right;
    }
    return count / 100.0;
  };
  EXPECT_GT(wrong_second("bimodal"), 40);
  EXPECT_LT(wrong_second("gshare"), 4);  // 8192 histories take long to meet
  EXPECT_LT(wrong_second("tage"), 5);
}

TEST(Predictor, ManyBranchesAtOnce) {
  Predictor predictor(parameters("tage"));
  unsigned count = 0;
  for (unsigned round = 0; round < 200; ++round) {
    for (unsigned i = 0; i < 500; ++i) {
      const bool right = predictor.conditional(0x400000 + i * 20, i * 2654435761u >> 31 != 0);
      if (round >= 20) count += !right;
    }
  }
  EXPECT_LT(count, 200 * 500 / 100);
}

TEST(Predictor, SmallestAndLargestParametersWork) {
  for (const char* kind : {"perfect", "bimodal", "gshare", "tage"}) {
    for (const uint32_t history : {1, 2, 5, 63, 64, 65, 128}) {
      for (const uint32_t bits : {1, 4, 16}) {
        PredictorParameters some = parameters(kind);
        some.history = history;
        some.table_bits = bits;
        some.btb = some.return_stack = 1;
        Predictor predictor(some);
        std::mt19937_64 random(1);
        unsigned right = 0;
        for (unsigned i = 0; i < 5000; ++i) right += predictor.conditional(kBranch, random() % 8 != 0);
        EXPECT_GT(right, 3000);
        predictor.called(1);
        predictor.called(2);
        EXPECT_TRUE(predictor.returned(2));
        EXPECT_FALSE(predictor.returned(1));
        EXPECT_FALSE(predictor.indirect(kBranch, 5));
        EXPECT_TRUE(predictor.indirect(kBranch, 5));
      }
    }
  }
}

TEST(Predictor, TheSameAgainGivesTheSame) {
  const auto run = [] {
    std::mt19937_64 random(1);
    return wrong("tage", [&](unsigned i) { return random() % 4 == 0 || i % 7 == 0; });
  };
  EXPECT_EQ(run(), run());
}

TEST(Predictor, IndirectTargetsByAddress) {
  Predictor predictor(parameters("tage"));
  unsigned count = 0;
  for (unsigned round = 0; round < 10; ++round) {
    for (Address i = 0; i < 100; ++i) count += !predictor.indirect(0x400000 + i * 36, 0x500000 + i * 100);
  }
  EXPECT_LE(count, 110);  // the first round
}

TEST(Predictor, IndirectTargetsByThoseBefore) {
  Predictor predictor(parameters("tage"));
  constexpr Address kTargets[] = {0x1000, 0x2000, 0x1000, 0x3000, 0x4000};
  unsigned count = 0;
  for (unsigned i = 0; i < 10000; ++i) {
    const bool right = predictor.indirect(kBranch, kTargets[i % 5]);
    if (i >= 1000) count += !right;
  }
  EXPECT_EQ(count, 0);
}

TEST(Predictor, AMostlyConstantTargetSurvivesAnException) {
  Predictor predictor(parameters("tage"));
  unsigned count = 0;
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 10000; ++i) count += !predictor.indirect(kBranch, random() % 20 == 0 ? 0x2000 : 0x1000);
  EXPECT_LT(count, 1200);
}

TEST(Predictor, ReturnsAreKnownUpToTheStacksSize) {
  Predictor predictor(parameters("tage"));
  for (Address i = 1; i <= 16; ++i) predictor.called(i);
  for (Address i = 16; i >= 1; --i) EXPECT_TRUE(predictor.returned(i));
  EXPECT_FALSE(predictor.returned(1));  // empty

  for (Address i = 1; i <= 20; ++i) predictor.called(i);  // the first four are lost
  for (Address i = 20; i >= 5; --i) EXPECT_TRUE(predictor.returned(i));
  for (Address i = 4; i >= 1; --i) EXPECT_FALSE(predictor.returned(i));
  predictor.called(7);
  EXPECT_TRUE(predictor.returned(7));
}

}  // namespace
}  // namespace annex::sim
