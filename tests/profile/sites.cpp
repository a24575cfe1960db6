// What a profile says of sites whose blocks are known, and when those are gone.
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "annex/annex.h"
#include "common/expect_success.h"
#include "common/opaque.h"
#include "common/scenario.h"
#include "profile/raw_profile.h"

using namespace annex_test;

namespace {

constexpr std::size_t kRate = 16 * 1024;

// Within five standard deviations of what it is: that of a Poisson process, in which each sample counts the same.
void check_near(const char* what, double found, double truth, std::uint64_t samples) {
  const double tolerance = 5 * truth / std::sqrt(static_cast<double>(samples + 1)) + 1e-6 * truth;
  if (std::abs(found - truth) <= tolerance) return;
  std::fprintf(stderr, "%s: %.0f instead of %.0f, with %lu samples\n", what, found, truth, samples);
  std::_Exit(1);
}

void free_all(std::vector<void*>* blocks) {
  for (void* block : *blocks) annex_free(block);
  blocks->clear();
}

// What it allocates itself is not to count: its room is there before the profile begins, and so are the threads that
// the library makes once there is a heap.
std::vector<void*> room(std::size_t blocks) {
  std::vector<void*> kept;
  kept.reserve(blocks);
  for (int i = 0; i < 100000; ++i) kept.push_back(opaque(annex_malloc(100)));
  free_all(&kept);
  return kept;
}

template <class Allocate>
void fill(std::vector<void*>* blocks, const char* label, std::size_t count, Allocate allocate) {
  const SiteLabel site(label);
  for (std::size_t i = 0; i < count; ++i) {
    blocks->push_back(opaque(allocate()));
    SCENARIO_CHECK(blocks->back() != nullptr);
  }
}

}  // namespace

// Of each kind of call and size: about 1,500 samples or more.
ANNEX_SCENARIO(profile_sites) {
  std::vector<void*> blocks = room(1000000);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  fill(&blocks, "small", 600000, [] { return annex_malloc(48); });
  fill(&blocks, "medium", 30000, [] { return annex_malloc(1000); });
  fill(&blocks, "zeroed", 10000, [] { return annex_calloc(10, 300); });
  fill(&blocks, "aligned", 100000, [] { return annex_aligned_alloc(256, 200); });
  fill(&blocks, "several-granules", 1500, [] { return annex_malloc(28000); });
  fill(&blocks, "span", 200, [] { return annex_malloc(200000); });
  const RawProfile profile = profile_now();
  const auto check = [&](const char* label, double count, double bytes) {
    const ProfiledSite& site = profile.sites.at(label);
    check_near(label, site.live_bytes, count * bytes, site.live_samples);
    check_near(label, site.bytes, count * bytes, site.samples);
    check_near(label, site.objects, count, site.samples);
    SCENARIO_CHECK(site.freed == 0 && !site.frames.empty());
  };
  check("small", 600000, 48);
  check("medium", 30000, 1000);
  check("zeroed", 10000, 3000);
  check("aligned", 100000, 200);
  check("several-granules", 1500, 28000);
  check("span", 200, 200000);
  SCENARIO_CHECK(profile.sites.at("small").samples > 1200 && profile.sites.at("span").samples == 200);
  SCENARIO_CHECK(!profile.shares.empty() && profile.stats.at("resident") > 0);
  free_all(&blocks);
  for (const auto& [label, site] : profile_now().sites) {
    if (label.empty()) continue;
    SCENARIO_CHECK(site.live_samples == 0);
    SCENARIO_CHECK(std::abs(site.freed - site.objects) < 1);
  }
  return 0;
}
TEST(Sites, OfEachKindOfCall) { expect_success("profile_sites"); }

// Each block is a sample: nothing is left to chance.
ANNEX_SCENARIO(profile_of_every_block) {
  std::vector<void*> blocks = room(100000);
  SCENARIO_CHECK(annex_profile_start(1) == 0);
  for (const std::size_t bytes : {1, 16, 17, 100, 1000, 10000, 40000, 100000}) {
    const SiteLabel site("all");
    for (int i = 0; i < 300; ++i) blocks.push_back(opaque(annex_malloc(bytes)));
  }
  const ProfiledSite site = profile_now().sites.at("all");
  const std::uint64_t of_others = site.samples - 8 * 300;  // libc's, of a thread that the library makes
  SCENARIO_CHECK(of_others < 10 && site.live_samples == site.samples);
  const double bytes = 300.0 * (1 + 16 + 17 + 100 + 1000 + 10000 + 40000 + 100000);
  SCENARIO_CHECK(std::abs(site.live_bytes - bytes) < bytes / 1000);
  free_all(&blocks);
  SCENARIO_CHECK(profile_now().sites.at("all").live_samples == of_others);
  return 0;
}
TEST(Sites, OfEveryBlock) { expect_success("profile_of_every_block"); }

// Blocks that are freed at once and handed out again and again: each is one that has been freed.
ANNEX_SCENARIO(profile_of_churn) {
  room(100000);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  {
    const SiteLabel site("churn");
    for (int i = 0; i < 2000000; ++i) annex_free(opaque(annex_malloc(64)));
  }
  const ProfiledSite site = profile_now().sites.at("churn");
  check_near("churn", site.bytes, 2000000.0 * 64, site.samples);
  SCENARIO_CHECK(site.live_samples == 0);
  return 0;
}
TEST(Ends, OfBlocksThatAreUsedAgain) { expect_success("profile_of_churn"); }

// Half of each page's blocks are freed; then others are allocated in their places, by another site.
ANNEX_SCENARIO(profile_of_places_used_again) {
  constexpr std::size_t kCount = 200000;
  std::vector<void*> first = room(kCount), second = room(kCount);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  fill(&first, "first", kCount, [] { return annex_malloc(128); });
  for (std::size_t i = 0; i < kCount; i += 2) annex_free(first[i]);
  fill(&second, "second", kCount / 2, [] { return annex_malloc(128); });
  const RawProfile profile = profile_now();
  const ProfiledSite& one = profile.sites.at("first");
  const ProfiledSite& other = profile.sites.at("second");
  check_near("first", one.live_bytes, kCount / 2 * 128.0, one.live_samples);
  check_near("second", other.live_bytes, kCount / 2 * 128.0, other.live_samples);
  return 0;
}
TEST(Ends, OfPlacesThatAnotherSiteUses) { expect_success("profile_of_places_used_again"); }

// Pages that go back, and come back as others' memory.
ANNEX_SCENARIO(profile_beside_holes) {
  constexpr std::size_t kCount = 40000;
  std::vector<void*> first = room(kCount), second = room(kCount);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  fill(&first, "first", kCount, [] { return annex_malloc(1000); });
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 40 != 0) annex_free(first[i]);
  }
  annex_purge();
  ProfiledSite site = profile_now().sites.at("first");
  check_near("after the purge", site.live_bytes, kCount / 40 * 1000.0, site.live_samples);
  fill(&second, "second", kCount, [] { return annex_malloc(1000); });
  const RawProfile profile = profile_now();
  check_near("first", profile.sites.at("first").live_bytes, kCount / 40 * 1000.0,
             profile.sites.at("first").live_samples);
  check_near("second", profile.sites.at("second").live_bytes, kCount * 1000.0, profile.sites.at("second").live_samples);
  return 0;
}
TEST(Ends, OfBlocksInHoles) { expect_success("profile_beside_holes"); }

// A large block that grows is as large as it has become, and its site is where it grew.
ANNEX_SCENARIO(profile_of_a_block_that_grows) {
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  void* block;
  {
    const SiteLabel site("made");
    block = opaque(annex_malloc(1 << 20));
  }
  {
    const SiteLabel site("grown");
    for (std::size_t bytes = 2 << 20; bytes <= 64 << 20; bytes *= 2) {
      block = opaque(annex_realloc(block, bytes));
      SCENARIO_CHECK(block != nullptr);
    }
  }
  const RawProfile profile = profile_now();
  SCENARIO_CHECK(profile.sites.at("made").live_samples == 0);
  SCENARIO_CHECK(profile.sites.at("grown").live_samples == 1);
  SCENARIO_CHECK(std::abs(profile.sites.at("grown").live_bytes - (64 << 20)) < 1000);
  annex_free(block);
  SCENARIO_CHECK(profile_now().sites.at("grown").live_samples == 0);
  return 0;
}
TEST(Ends, OfABlockThatGrows) { expect_success("profile_of_a_block_that_grows"); }

// What a site had stays known when no more samples are taken, and is seen to be freed.
ANNEX_SCENARIO(profile_stopped) {
  std::vector<void*> blocks = room(200000);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  fill(&blocks, "before", 50000, [] { return annex_malloc(200); });
  annex_profile_stop();
  fill(&blocks, "after", 50000, [] { return annex_malloc(200); });
  RawProfile profile = profile_now();
  SCENARIO_CHECK(profile.sites.count("after") == 0);
  check_near("before", profile.sites.at("before").live_bytes, 1e7, profile.sites.at("before").live_samples);
  free_all(&blocks);
  SCENARIO_CHECK(profile_now().sites.at("before").live_samples == 0);
  return 0;
}
TEST(Ends, OfAProfile) { expect_success("profile_stopped"); }

// Each time as if it were the first: neither what was allocated in between nor what went back counts.
ANNEX_SCENARIO(profile_begun_again) {
  constexpr int kTimes = 400;
  constexpr int kBlocks = 100;
  std::vector<void*> blocks = room(kTimes * kBlocks);
  for (int i = 0; i < kTimes; ++i) {
    SCENARIO_CHECK(annex_profile_start(kRate) == 0);
    fill(&blocks, "on", kBlocks, [] { return annex_malloc(200); });
    annex_profile_stop();
    for (int off = 0; off < 20; ++off) {
      annex_free(opaque(annex_malloc(200)));
      annex_purge();
    }
  }
  const ProfiledSite site = profile_now().sites.at("on");
  check_near("on", site.bytes, 200.0 * kTimes * kBlocks, site.samples);
  free_all(&blocks);
  for (int i = 0; i < kTimes * kBlocks; ++i) blocks.push_back(opaque(annex_malloc(200)));
  SCENARIO_CHECK(profile_now().sites.at("on").live_samples == 0);
  return 0;
}
TEST(Ends, OfAProfileThatBeginsAgain) { expect_success("profile_begun_again"); }

ANNEX_SCENARIO(profile_labels) {
  std::vector<void*> blocks = room(100000);
  SCENARIO_CHECK(annex_profile_start(1) == 0);
  SCENARIO_CHECK(annex_profile_label("site", "a") == 0);
  SCENARIO_CHECK(annex_profile_label("tenant", "with space\\and backslash") == 0);
  blocks.push_back(annex_malloc(10));
  SCENARIO_CHECK(annex_profile_label("site", "b") == 0);
  blocks.push_back(annex_malloc(10));
  SCENARIO_CHECK(annex_profile_label("site", nullptr) == 0);
  SCENARIO_CHECK(annex_profile_label("tenant", nullptr) == 0);
  SCENARIO_CHECK(annex_profile_label("tenant", nullptr) == 0);
  const RawProfile profile = profile_now();
  SCENARIO_CHECK(profile.sites.at("a").samples == 1 && profile.sites.at("b").samples == 1);
  errno = 0;
  SCENARIO_CHECK(annex_profile_label(nullptr, "x") == -1 && errno == EINVAL);
  errno = 0;
  SCENARIO_CHECK(annex_profile_label("", "x") == -1 && errno == EINVAL);
  char key[] = "k?";
  int set = 0;
  for (key[1] = 'a'; annex_profile_label(key, "v") == 0; ++key[1]) ++set;
  SCENARIO_CHECK(set == 16);
  return 0;
}
TEST(Sites, Labels) { expect_success("profile_labels"); }

ANNEX_SCENARIO(profile_errors) {
  SCENARIO_CHECK(annex_profile_start(0) == 0);
  errno = 0;
  SCENARIO_CHECK(annex_profile_write(nullptr) == -1 && errno == EINVAL);
  errno = 0;
  SCENARIO_CHECK(annex_profile_write("/nowhere/at/all") == -1 && errno == ENOENT);
  errno = 0;
  SCENARIO_CHECK(annex_profile_write("/dev/full") == -1 && errno == ENOSPC);
  return 0;
}
TEST(Errors, OfWriting) {
  Launch launch;
  launch.scenario = "profile_errors";
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_EQ(outcome.err,
            "annex: can't write the profile to /nowhere/at/all: No such file or directory\n"
            "annex: can't write the profile to /dev/full: No space left on device\n");
}
