// Blocks allocated by one thread and freed by another, in every pattern that programs have.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "common/flavour.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

// A bounded queue without memory of its own beyond its array.
class Channel {
 public:
  void send(Parcel* parcel) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ < kCapacity; });
    items_[(first_ + count_++) % kCapacity] = parcel;
    changed_.notify_all();
  }
  Parcel* receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0; });
    Parcel* parcel = items_[first_];
    first_ = (first_ + 1) % kCapacity;
    --count_;
    changed_.notify_all();
    return parcel;
  }

 private:
  static constexpr std::size_t kCapacity = 256;
  std::mutex mutex_;
  std::condition_variable changed_;
  Parcel* items_[kCapacity];
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

TEST(RemoteFree, ProducersAndConsumers) {
  constexpr int kPairs = 8;
  constexpr int kParcels = 20000 / kSlowdown;
  std::vector<Channel> channels(kPairs);
  in_threads(2 * kPairs, [&](int id) {
    Channel& channel = channels[static_cast<std::size_t>(id / 2)];
    Random random(static_cast<std::uint64_t>(id));
    for (int i = 0; i < kParcels; ++i) {
      if (id % 2 == 0) {
        Parcel* parcel = make_parcel(parcel_size(random), random.next());
        DEMAND(parcel != nullptr);
        channel.send(parcel);
      } else {
        free_parcel(channel.receive());
      }
    }
  });
}

TEST(RemoteFree, APipelineOfThreads) {
  // Each stage reallocates what it gets: a remote free and a local allocation in one call.
  constexpr int kStages = 6;
  constexpr int kParcels = 6000 / kSlowdown;
  std::vector<Channel> channels(kStages - 1);
  in_threads(kStages, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    const auto stage = static_cast<std::size_t>(id);
    for (int i = 0; i < kParcels; ++i) {
      Parcel* parcel = id == 0 ? make_parcel(parcel_size(random), random.next()) : channels[stage - 1].receive();
      DEMAND(parcel != nullptr);
      check_parcel(parcel);
      if (id > 0) {
        const std::size_t bytes = parcel_size(random);
        const std::uint64_t kept = bytes < parcel->bytes ? bytes : parcel->bytes;
        parcel = static_cast<Parcel*>(opaque(annex_realloc(parcel, bytes)));
        DEMAND(parcel != nullptr);
        DEMAND(mismatch(parcel + 1, kept - sizeof(Parcel), parcel->key) == kNoMismatch);
        parcel->bytes = bytes;
        fill(parcel + 1, bytes - sizeof(Parcel), parcel->key);
      }
      if (id == kStages - 1) {
        free_parcel(parcel);
      } else {
        channels[stage].send(parcel);
      }
    }
  });
}

TEST(RemoteFree, EverybodyTradesWithEverybody) {
  for (int threads : {2, 16, 64}) {
    Slots slots;
    in_threads(threads, [&](int id) {
      Random random(static_cast<std::uint64_t>(id));
      trade(slots, random, 200000 / kSlowdown / threads);
    });
  }
}

TEST(RemoteFree, TwoHundredThreads) {
  Slots slots;
  in_threads(200, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    trade(slots, random, 1500 / kSlowdown);
  });
}

TEST(RemoteFree, MemoryFreedElsewhereIsUsedAgain) {
  // One thread allocates all, others free all, again and again: the heap must not grow after the
  // first rounds. Compared is what it holds while all blocks live: how much waits in an inbox once
  // they are freed depends on how the threads took turns.
  constexpr std::size_t kBlocks = 40000;
  std::vector<Parcel*> parcels(kBlocks);
  std::uint64_t early = 0;
  std::uint64_t late = 0;
  for (int round = 0; round < 12; ++round) {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      parcels[i] = make_parcel(16 + i % 400, i);
      DEMAND(parcels[i] != nullptr);
    }
    late = stats_now().slabs;
    if (round == 2) early = late;
    in_threads(4, [&](int id) {
      for (auto i = static_cast<std::size_t>(id); i < kBlocks; i += 4) free_parcel(parcels[i]);
    });
  }
  EXPECT_LE(late, early + early / 8);
}

TEST(RemoteFree, LargeBlocks) {
  Slots slots;
  in_threads(8, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    for (int i = 0; i < 400 / kSlowdown; ++i) {
      Parcel* parcel = make_parcel(random.between(30 * kKiB, 2 * kMiB), random.next());
      DEMAND(parcel != nullptr);
      free_parcel(slots.exchange(random.below(24), parcel));
    }
  });
}

TEST(RemoteFree, AlignedBlocks) {
  Slots slots;
  in_threads(8, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    for (int i = 0; i < 8000 / kSlowdown; ++i) {
      const std::size_t alignment = std::size_t{16} << random.below(10);
      const std::size_t bytes = random.between(sizeof(Parcel), 3000);
      auto* parcel = static_cast<Parcel*>(opaque(annex_aligned_alloc(alignment, bytes)));
      DEMAND(parcel != nullptr && is_aligned(parcel, alignment));
      parcel->bytes = bytes;
      parcel->key = random.next();
      fill(parcel + 1, bytes - sizeof(Parcel), parcel->key);
      free_parcel(slots.exchange(random.next(), parcel));
    }
  });
}

TEST(RemoteFree, ReportsWhileOthersAllocate) {
  // Statistics, heap walk and purge run beside allocating threads; their counts are snapshots, but
  // they must not disturb anything.
  Slots slots;
  std::atomic<int> running{4};
  in_threads(5, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    if (id < 4) {
      trade(slots, random, 30000 / kSlowdown);
      --running;
      return;
    }
    int rounds = 0;
    while (running > 0 || rounds == 0) {
      ++rounds;
      const annex_stats_t stats = stats_now();
      DEMAND(stats.committed <= stats.reserved);
      annex_heap_walk([](const annex_region* region, void*) { return region->bytes == 0 ? 1 : 0; }, nullptr);
      annex_purge();
      char json[2048];
      DEMAND(annex_stats_json(json, sizeof json) > 0);
    }
  });
}

// Two blocks of a slab of few, freed by another thread in turn: never the same one twice in a row, which the outbox
// would see, but soon more than the slab has.
ANNEX_SCENARIO(remote_double_frees) {
  void* blocks[8];
  for (void*& block : blocks) block = opaque(annex_malloc(16 * kKiB));
  Thread([&] {
    for (int i = 0; i < 64; ++i) annex_free(blocks[i % 2]);
  }).join();
  return 0;
}

TEST(RemoteFree, MoreFreesThanBlocksAbort) {
  if (flavour() != Flavour::kShared) GTEST_SKIP() << "no remote frees";
  Launch launch;
  launch.scenario = "remote_double_frees";
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.signal, SIGABRT) << describe(outcome);
  EXPECT_EQ(outcome.err.compare(0, 26, "annex: a block freed twice"), 0) << describe(outcome);
}
