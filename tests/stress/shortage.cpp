// Memory that runs out under many threads: each of them gets NULL and ENOMEM, none crashes, and all
// go on.
#include <gtest/gtest.h>

#include <cerrno>
#include <new>

#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

constexpr int kThreads = 12;

void expect_success(const Launch& launch) {
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  const bool own_limit = !launch.environment.empty();  // said once, whichever thread meets it
  EXPECT_EQ(outcome.err,
            own_limit ? "annex: an allocation fails that would pass ANNEX_MAX_HEAP, 67108864 bytes (said once)\n" : "");
}

// Takes parcels of one size until there are no more, chained through their keys; returns how many
// bytes it got.
std::size_t take_all(std::size_t bytes) {
  Parcel* last = nullptr;
  std::size_t held = 0;
  for (;;) {
    errno = 0;
    auto* parcel = static_cast<Parcel*>(opaque(annex_malloc(bytes)));
    if (parcel == nullptr) {
      DEMAND(errno == ENOMEM);
      break;
    }
    parcel->bytes = bytes;
    parcel->key = reinterpret_cast<std::uintptr_t>(last);
    last = parcel;
    held += bytes;
  }
  while (last != nullptr) {
    auto* next = reinterpret_cast<Parcel*>(last->key);
    DEMAND(last->bytes == bytes);
    annex_free(last);
    last = next;
  }
  return held;
}

}  // namespace

ANNEX_SCENARIO(all_threads_take_all) {
  // Stacks for all, and for a support thread: libc keeps those of threads that ended, and later there is no room.
  in_threads(kThreads + 2, [](int) {});
  for (int round = 0; round < 3; ++round) {
    static std::atomic<int> came_away_with_something;
    came_away_with_something = 0;
    in_threads(kThreads, [](int id) {
      constexpr std::size_t kSizes[] = {64, 1000, 20 * kKiB, 300 * kKiB};
      for (int i = 0; i < 2; ++i) {
        if (take_all(kSizes[(id + i) % 4]) > 0) ++came_away_with_something;
      }
    });
    DEMAND(came_away_with_something > 0);
    // With all of it free again, most of the limit can be had at once: here and in a new thread.
    void* block = opaque(annex_malloc(24 * kMiB));
    DEMAND(block != nullptr);
    annex_free(block);
    Thread([] {
      for (std::size_t bytes : {std::size_t{100}, 5 * kKiB, 100 * kKiB}) {
        DEMAND(take_all(bytes) >= 24 * kMiB);
      }
    }).join();
  }
  return 0;
}

TEST(Shortage, MaxHeapUnderThreads) {
  Launch launch;
  launch.scenario = "all_threads_take_all";
  launch.environment = {{"ANNEX_MAX_HEAP", "64M"}};
  expect_success(launch);
}

// Large blocks of many lengths that come and go: taking one often lets go of the lock, to give memory back first.
ANNEX_SCENARIO(large_blocks_at_the_limit) {
  // In every program whose malloc this is, something was allocated before there were threads.
  annex_free(opaque(annex_malloc(1)));
  static std::atomic<int> refused{0};
  in_threads(8, [](int id) {
    Random random(static_cast<std::uint64_t>(id));
    void* blocks[4] = {};
    while (refused < 20000 / kSlowdown) {
      void*& block = blocks[random.below(4)];
      annex_free(block);
      block = opaque(annex_malloc(random.between(kMiB / 4, 6 * kMiB)));
      refused += block == nullptr;
    }
    for (void* block : blocks) annex_free(block);
  });
  const std::size_t peak = stats_now().peak_in_use;
  if (peak > 64 * kMiB) fprintf(stderr, "%zu bytes in use\n", peak);
  DEMAND(peak <= 64 * kMiB);
  return 0;
}

TEST(Shortage, ThreadsCannotPassTheLimitTogether) {
  Launch launch;
  launch.scenario = "large_blocks_at_the_limit";
  launch.environment = {{"ANNEX_MAX_HEAP", "64M"}};
  expect_success(launch);
}

// The sanitizers need more address space than any limit leaves, and operator new is not Annex's
// there.
#ifdef ANNEX_TEST_REPLACED

TEST(Shortage, AddressSpaceLimitUnderThreads) {
  Launch launch;
  launch.scenario = "all_threads_take_all";
  launch.address_space = 256 * kMiB;
  expect_success(launch);
}

TEST(Shortage, DataLimitUnderThreads) {
  Launch launch;
  launch.scenario = "all_threads_take_all";
  launch.data = 192 * kMiB;
  expect_success(launch);
}

namespace {

std::atomic<int> handler_calls{0};
std::atomic<void*> reserves[kThreads];

// Frees one reserve; throws once there is none left.
void give_up_a_reserve() {
  ++handler_calls;
  for (auto& reserve : reserves) {
    if (void* block = reserve.exchange(nullptr)) {
      ::operator delete(block);
      return;
    }
  }
  throw std::bad_alloc();
}

}  // namespace

ANNEX_SCENARIO(new_handler_under_threads) {
  for (auto& reserve : reserves) reserve = ::operator new(kMiB);
  std::set_new_handler(give_up_a_reserve);
  static std::atomic<int> gave_up{0};
  in_threads(kThreads, [](int) {
    struct Link {
      Link* next;
      char rest[50000];
    };
    Link* last = nullptr;
    try {
      for (;;) {
        auto* link = new Link;
        link->next = last;
        last = link;
      }
    } catch (const std::bad_alloc&) {
      ++gave_up;
    }
    while (last != nullptr) {
      Link* next = last->next;
      delete last;
      last = next;
    }
  });
  // Each loop ends by bad_alloc alone.
  DEMAND(gave_up == kThreads);
  DEMAND(handler_calls > kThreads);
  std::set_new_handler(nullptr);
  ::operator delete(::operator new(20 * kMiB));
  return 0;
}

TEST(Shortage, NewHandlerUnderThreads) {
  Launch launch;
  launch.scenario = "new_handler_under_threads";
  launch.environment = {{"ANNEX_MAX_HEAP", "64M"}};
  expect_success(launch);
}

#endif
