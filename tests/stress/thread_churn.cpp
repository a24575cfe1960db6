// Thousands of short threads: heaps are handed on, blocks outlive their threads, memory does not
// creep.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/expect_success.h"
#include "common/flavour.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

constexpr int kAtOnce = 8;

// `count` threads, kAtOnce of them at a time, each of which trades a little and leaves what it made
// in the slots.
void churn(Slots& slots, int count) {
  for (int done = 0; done < count; done += kAtOnce) {
    in_threads(kAtOnce, [&](int id) {
      Random random(static_cast<std::uint64_t>(done + id));
      trade(slots, random, 60);
    });
  }
}

// Of each of some 40 classes, `bytes` in blocks that are all in use at the same time; then it frees them.
void use_many_classes(std::size_t bytes) {
  for (std::size_t size = 16; size <= 1000; size += 16) {
    std::vector<void*> blocks(bytes / size + 1);
    for (void*& block : blocks) block = opaque(annex_malloc(size));
    for (void* block : blocks) annex_free(block);
  }
}

}  // namespace

TEST(ThreadChurn, HeapsAreHandedOn) {
  Slots slots;
  const std::uint64_t before = stats_now().heaps;
  churn(slots, 4000 / kSlowdown);
  // One heap for each thread that ran at the same time as others, and a few that were slow to
  // leave.
  EXPECT_LE(stats_now().heaps, before + 2 * kAtOnce);
}

// In a process of its own: a heap of other tests first takes in what their threads left. A cold heap refills 62 times.
ANNEX_SCENARIO(ready_after_a_thread) {
  const auto life = [] { use_many_classes(1); };
  Thread(life).join();
  const std::uint64_t before = stats_now().slab_refills;
  Thread(life).join();
  DEMAND(stats_now().slab_refills <= before + 10);
  return 0;
}

TEST(ThreadChurn, AThreadGoesOnWithTheBlocksThatTheLastOneHadReady) {
  if (flavour() == Flavour::kOffload) GTEST_SKIP() << "what is ready goes back to the support core";
  expect_success("ready_after_a_thread");
}

ANNEX_SCENARIO(purge_after_threads) {
  annex_purge();
  const std::uint64_t before = stats_now().slabs;
  in_threads(2, [](int) { use_many_classes(32 * kKiB); });
  annex_purge();
  DEMAND(stats_now().slabs <= before + kMiB / 4);
  return 0;
}

TEST(ThreadChurn, APurgeReachesWhatThreadsThatEndedHadReady) { expect_success("purge_after_threads"); }

TEST(ThreadChurn, MemoryDoesNotCreep) {
  Slots slots;
  // First until it has settled: memory, of which a sixteenth more is books in the hardened build, grows by steps.
  churn(slots, std::max(6000 / kSlowdown, 1000));
  slots.clear();
  const annex_stats_t early = stats_now();
  churn(slots, 3600 / kSlowdown);
  slots.clear();
  const annex_stats_t late = stats_now();
  // By heap: how many threads are in the midst of it at the same time, and so how many heaps are made, is the
  // scheduler's to say, and may become more at any time.
  const std::uint64_t early_each = (early.slabs + early.used_spans) / early.heaps;
  const std::uint64_t late_each = (late.slabs + late.used_spans) / late.heaps;
  EXPECT_LE(late_each, early_each + early_each / 2 + kMiB / 4) << early.heaps << " heaps, then " << late.heaps;
  EXPECT_LE(late.metadata, early.metadata + kMiB);
}

TEST(ThreadChurn, BlocksOutliveTheirThreads) {
  constexpr int kThreads = 300 / (kSlowdown > 1 ? 3 : 1);
  constexpr int kEach = 100;
  static Parcel* parcels[kThreads][kEach];
  for (int thread = 0; thread < kThreads; ++thread) {
    Thread([&, thread] {
      Random random(static_cast<std::uint64_t>(thread));
      for (Parcel*& parcel : parcels[thread]) {
        parcel = make_parcel(parcel_size(random), random.next());
        DEMAND(parcel != nullptr);
      }
    }).join();
  }
  // Every other one from here, the rest from a thread that is new.
  for (int thread = 0; thread < kThreads; thread += 2) {
    for (Parcel* parcel : parcels[thread]) free_parcel(parcel);
  }
  Thread([&] {
    for (int thread = 1; thread < kThreads; thread += 2) {
      for (Parcel* parcel : parcels[thread]) free_parcel(parcel);
    }
  }).join();
}

TEST(ThreadChurn, ThreadsThatOnlyFree) {
  // Each takes one block that another made and never allocates: no heap needs to be made for it.
  const std::uint64_t before = stats_now().heaps;
  for (int i = 0; i < 1000 / kSlowdown; ++i) {
    Parcel* parcel = make_parcel(100, static_cast<std::uint64_t>(i));
    pthread_t thread;
    const auto body = [](void* block) -> void* {
      free_parcel(static_cast<Parcel*>(block));
      return nullptr;
    };
    DEMAND(pthread_create(&thread, nullptr, body, parcel) == 0);
    DEMAND(pthread_join(thread, nullptr) == 0);
  }
  EXPECT_LE(stats_now().heaps, before + 4);
}
