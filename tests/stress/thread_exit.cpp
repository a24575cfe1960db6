// Allocation and freeing while a thread ends: thread_local destructors, key destructors in every
// round, detached threads at the end of the process.
#include <gtest/gtest.h>
#include <limits.h>

#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

Slots slots;

// Allocates, trades and frees when its thread ends, wherever that falls among the other
// destructors.
struct Farewell {
  Parcel* kept = nullptr;
  explicit Farewell(std::size_t bytes) : kept(make_parcel(bytes, bytes)) {}
  ~Farewell() {
    Random random(kept->key);
    trade(slots, random, 20);
    free_parcel(kept);
    free_parcel(make_parcel(100, 1));
  }
};

pthread_key_t keys[4];

// In the last round the thread sanitizer has taken its own state of the thread down already.
#ifdef __SANITIZE_THREAD__
constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif

// Puts a new block under the key again until the rounds run out; the last one is handed over to the
// slots.
struct Round {
  Parcel* parcel;
  int key;
  int left;
};

void next_round(void* value) {
  auto* round = static_cast<Round*>(value);
  Random random(static_cast<std::uint64_t>(round->left));
  free_parcel(round->parcel);
  trade(slots, random, 5);
  const int key = round->key;
  const int left = round->left - 1;
  annex_free(round);
  if (left == 0) return;
  auto* next = static_cast<Round*>(opaque(annex_malloc(sizeof(Round))));
  DEMAND(next != nullptr);
  *next = {make_parcel(parcel_size(random), random.next()), key, left};
  DEMAND(next->parcel != nullptr);
  DEMAND(pthread_setspecific(keys[key], next) == 0);
}

void arm_keys(int rounds) {
  for (int key = 0; key < 4; ++key) {
    auto* round = static_cast<Round*>(opaque(annex_malloc(sizeof(Round))));
    DEMAND(round != nullptr);
    *round = {make_parcel(64, 1), key, rounds};
    DEMAND(pthread_setspecific(keys[key], round) == 0);
  }
}

class ThreadExit : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (pthread_key_t& key : keys) ASSERT_EQ(pthread_key_create(&key, next_round), 0);
  }
  static void TearDownTestSuite() {
    for (const pthread_key_t key : keys) pthread_key_delete(key);
    slots.clear();
  }
};

}  // namespace

TEST_F(ThreadExit, ThreadLocalDestructorsAllocateAndFree) {
  for (int i = 0; i < 300 / kSlowdown; ++i) {
    in_threads(4, [](int id) {
      // One is made before the thread's first allocation, one after.
      thread_local Farewell first(100);
      Random random(static_cast<std::uint64_t>(id));
      trade(slots, random, 50);
      thread_local Farewell second(5000);
      DEMAND(first.kept != second.kept);
    });
  }
}

TEST_F(ThreadExit, KeyDestructorsAllocateInEveryRound) {
  const std::uint64_t before = stats_now().heaps;
  for (int i = 0; i < 600 / kSlowdown; ++i) {
    Thread([i] {
      Random random(static_cast<std::uint64_t>(i));
      trade(slots, random, 20);
      arm_keys(kRounds);
    }).join();
  }
  // A heap that a thread took for its very last destructor must find its way back too.
  EXPECT_LE(stats_now().heaps, before + 8);
}

TEST_F(ThreadExit, ThreadsThatAllocateOnlyInDestructors) {
  const std::uint64_t before = stats_now().heaps;
  static std::atomic<int> ran{0};
  ran = 0;
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key,
                               [](void*) {
                                 ++ran;
                                 free_parcel(make_parcel(200, 3));
                               }),
            0);
  const int threads = 300 / kSlowdown;
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    const auto body = [](void* argument) -> void* {
      pthread_setspecific(*static_cast<pthread_key_t*>(argument), argument);
      return nullptr;
    };
    DEMAND(pthread_create(&thread, nullptr, body, &key) == 0);
    DEMAND(pthread_join(thread, nullptr) == 0);
  }
  pthread_key_delete(key);
  EXPECT_EQ(ran, threads);
  EXPECT_LE(stats_now().heaps, before + 8);
}

TEST_F(ThreadExit, FreesAfterTheHeapWasHandedBack) {
  // Blocks of a thread that has ended are freed by a thread that is ending.
  for (int i = 0; i < 200 / kSlowdown; ++i) {
    Parcel* left = nullptr;
    Thread([&] { left = make_parcel(300, 7); }).join();
    Thread([&] {
      thread_local struct Late {
        Parcel* parcel = nullptr;
        ~Late() { free_parcel(parcel); }
      } late;
      late.parcel = left;
    }).join();
  }
}

TEST_F(ThreadExit, CancelledThreads) {
  for (int i = 0; i < 60 / kSlowdown + 4; ++i) {
    pthread_t thread;
    const auto body = [](void*) -> void* {
      Random random(11);
      for (;;) {
        trade(slots, random, 10);
        pthread_testcancel();
      }
    };
    DEMAND(pthread_create(&thread, nullptr, body, nullptr) == 0);
    DEMAND(pthread_cancel(thread) == 0);
    void* result = nullptr;
    DEMAND(pthread_join(thread, &result) == 0);
    DEMAND(result == PTHREAD_CANCELED);
  }
}

ANNEX_SCENARIO(main_exits_under_load) {
  // exit() runs atexit functions beside the threads. The slots are leaked, so that no destructor
  // races with those.
  static auto* shared = new Slots;
  static std::atomic<int> started{0};
  for (int i = 0; i < 6; ++i) {
    pthread_t thread;
    const auto body = [](void*) -> void* {
      Random random(static_cast<std::uint64_t>(++started));
      for (;;) trade(*shared, random, 100);
    };
    DEMAND(pthread_create(&thread, nullptr, body, nullptr) == 0);
    DEMAND(pthread_detach(thread) == 0);
  }
  while (started < 6) sched_yield();
  atexit([] {
    for (int i = 0; i < 1000; ++i) free_parcel(make_parcel(1000, 1));
  });
  return 0;
}

TEST_F(ThreadExit, TheProcessEndsWhileThreadsAllocate) {
  for (int i = 0; i < (kSlowdown > 1 ? 3 : 15); ++i) {
    Launch launch;
    launch.scenario = "main_exits_under_load";
    const Outcome outcome = run_scenario(launch);
    ASSERT_EQ(outcome.exit_code, 0) << describe(outcome);
    ASSERT_EQ(outcome.err, "");
  }
}
