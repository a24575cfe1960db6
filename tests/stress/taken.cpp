// Heaps that are taken from their threads by others, which trim all the time: while the threads sleep, while they work,
// in the middle of any step. No block is lost, handed out twice, or changed.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "common/expect_success.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

void sleep_us(long microseconds) {
  const timespec time{microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  nanosleep(&time, nullptr);
}

// Few enough sizes that the classes' lists are long, and most of what is allocated and freed takes the fast paths.
std::size_t usual_size(Random& random) { return std::size_t{16} << random.below(7); }
std::size_t small_size(Random& random) { return 100 + random.below(2) * 100; }
std::size_t large_size(Random& random) { return std::size_t{1000} << random.below(6); }

// A thread's own blocks, many freed and a few kept: pages become empty, and are filled again.
void come_and_go(Random& random, int rounds, std::size_t (*size)(Random&) = usual_size, std::size_t most = 3000) {
  std::vector<Parcel*> parcels(most, nullptr);
  for (int round = 0; round < rounds; ++round) {
    for (Parcel*& parcel : parcels) {
      if (parcel == nullptr) parcel = make_parcel(size(random), random.next());
      DEMAND(parcel != nullptr);
    }
    const bool few = random.below(2) == 0;
    for (std::size_t i = 0; i < parcels.size(); ++i) {
      if (few ? i % 64 == 0 : random.below(8) == 0) continue;
      free_parcel(parcels[i]);
      parcels[i] = nullptr;
      if (random.below(400) == 0) sleep_us(static_cast<long>(random.below(300)));
    }
    // Pairs, which stay in the fast paths.
    for (int pair = 0; pair < 2000; ++pair) free_parcel(make_parcel(size(random), random.next()));
    if (random.below(4) == 0) sleep_us(1000);
  }
  for (Parcel* parcel : parcels) free_parcel(parcel);
}

// Runs body(id) in threads, while one more trims without end.
void with_a_trimmer(int threads, const std::function<void(int)>& body) {
  std::atomic<bool> done{false};
  Thread trimmer([&] {
    while (!done) {
      annex_purge();
      sched_yield();
    }
  });
  in_threads(threads, body);
  done = true;
  trimmer.join();
}

}  // namespace

ANNEX_SCENARIO(taken_at_work) {
  with_a_trimmer(4, [](int id) {
    Random random(static_cast<std::uint64_t>(id));
    come_and_go(random, 40 / kSlowdown + 1);
  });
  return 0;
}
TEST(Taken, AtWork) { expect_success("taken_at_work"); }

ANNEX_SCENARIO(taken_with_few_sizes) {
  // In the hardened flavour almost every free makes another block leave that was freed long ago, from pages of which
  // much has been given back since.
  with_a_trimmer(3, [](int id) {
    Random random(static_cast<std::uint64_t>(id));
    come_and_go(random, 200 / kSlowdown + 1, small_size);
  });
  return 0;
}
TEST(Taken, WithFewSizes) { expect_success("taken_with_few_sizes"); }

ANNEX_SCENARIO(taken_with_larger_blocks) {
  // There, slabs that are full, as all of their blocks are in use or were freed last.
  with_a_trimmer(3, [](int id) {
    Random random(static_cast<std::uint64_t>(id));
    come_and_go(random, 40 / kSlowdown + 1, large_size, 60);
  });
  return 0;
}
TEST(Taken, WithLargerBlocks) { expect_success("taken_with_larger_blocks"); }

ANNEX_SCENARIO(taken_with_few_larger_blocks) {
  // In slabs of one, two and three granules, so few that all of a slab's are among those that were freed last, and so
  // often that what is let go of is at once in use for another class. The argument: how many blocks lie before them, so
  // that they lie in another arena than the first where that is small.
  constexpr std::size_t kSizes[] = {32000, 24000, 16000, 24000, 32000, 10000, 24000};
  constexpr std::size_t kMost = 80;
  const std::size_t before = std::strtoul(scenario_argument(), nullptr, 10);
  for (std::size_t i = 0; i < before; ++i) DEMAND(opaque(annex_malloc(4000)) != nullptr);
  for (const std::size_t few : {8u, 20u, 40u}) {
    static std::atomic<int> turn;
    turn = 0;
    const int rounds = 300 / kSlowdown + 1;
    Thread thread([=] {
      static char* blocks[kMost];
      Random random(few);
      for (int round = 0; round < rounds; ++round) {
        const std::size_t bytes = kSizes[static_cast<std::size_t>(round) % std::size(kSizes)];
        const std::size_t count = few + random.below(few);
        for (std::size_t i = 0; i < count; ++i) {
          blocks[i] = static_cast<char*>(std::memset(opaque(annex_malloc(bytes)), static_cast<int>(i), bytes));
        }
        if (random.below(2) == 0) {
          for (std::size_t i = count; i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
        }
        for (std::size_t i = 0; i < count; ++i) {
          DEMAND(blocks[i][0] == blocks[i][bytes - 1]);
          annex_free(blocks[i]);
        }
        turn = 2 * round + 1;
        while (turn != 2 * round + 2) sleep_us(20);
      }
    });
    for (int round = 0; round < rounds; ++round) {
      while (turn != 2 * round + 1) sleep_us(20);
      sleep_us(100);  // it sleeps by then
      annex_purge();
      turn = 2 * round + 2;
    }
    thread.join();
  }
  return 0;
}
TEST(Taken, WithFewLargerBlocks) {
  Launch launch;
  launch.scenario = "taken_with_few_larger_blocks";
  launch.argument = "0";
  expect_success(launch);
  launch.argument = "5000";
  launch.environment = {{"ANNEX_RESERVE", "4M"}};
  expect_success(launch);
}

ANNEX_SCENARIO(taken_while_trading) {
  // Others free what a thread has allocated whose heap is taken.
  Slots slots;
  with_a_trimmer(6, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    trade(slots, random, 30'000 / kSlowdown);
  });
  return 0;
}
TEST(Taken, WhileTrading) { expect_success("taken_while_trading"); }

ANNEX_SCENARIO(taken_from_threads_that_end) {
  with_a_trimmer(3, [](int id) {
    for (int i = 0; i < 40 / kSlowdown + 1; ++i) {
      Thread([=] {
        Random random(static_cast<std::uint64_t>(id * 100 + i));
        come_and_go(random, 1);
      }).join();
    }
  });
  return 0;
}
TEST(Taken, FromThreadsThatEnd) { expect_success("taken_from_threads_that_end"); }

namespace {

// Passes of whoever trims in taken_where_a_signal_comes.
std::atomic<int> passes{0};

// Stops the thread wherever it is, until its heap has been asked for. Where it holds a lock, nobody else gets on; so
// not for long.
void stop_here(int) {
  const int from = passes;
  for (int i = 0; i < 10 && passes < from + 2; ++i) sleep_us(50);
}

}  // namespace

ANNEX_SCENARIO(taken_where_a_signal_comes) {
  // Hardly anything but fast paths, of a few classes, from magazines and lists that are full, or empty, or hold one.
  constexpr int kWorkers = 2;
  struct sigaction action = {};
  action.sa_handler = stop_here;
  action.sa_flags = SA_RESTART;
  DEMAND(sigaction(SIGUSR1, &action, nullptr) == 0);
  static std::atomic<pthread_t> workers[kWorkers] = {};
  std::atomic<bool> done{false};
  std::vector<Thread> threads;
  for (int id = 0; id < kWorkers; ++id) {
    threads.emplace_back([&done, id] {
      workers[id] = pthread_self();
      Random random(static_cast<std::uint64_t>(id));
      std::uint64_t* blocks[64];
      while (!done) {
        // Not parcels, which take far longer to write and to read than malloc and free.
        const std::size_t size = std::size_t{16} << (random.below(3) * 2);
        const std::uint64_t count = random.below(100) == 0 ? 64 : 1 + random.below(4);
        for (std::uint64_t i = 0; i < count; ++i) {
          blocks[i] = static_cast<std::uint64_t*>(annex_malloc(size));
          *blocks[i] = reinterpret_cast<std::uint64_t>(blocks + i) + count;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
          DEMAND(*blocks[i] == reinterpret_cast<std::uint64_t>(blocks + i) + count);
          annex_free(blocks[i]);
        }
      }
    });
  }
  Thread trimmer([&done] {
    for (; !done; ++passes) annex_purge();
  });
  for (int i = 0; i < 1000 / kSlowdown; ++i) {
    sleep_us(500);
    if (const pthread_t worker = workers[i % kWorkers]; worker != 0) pthread_kill(worker, SIGUSR1);
  }
  done = true;
  return 0;
}
TEST(Taken, WhereASignalComes) { expect_success("taken_where_a_signal_comes"); }

ANNEX_SCENARIO(taken_from_threads_that_vanish) {
  // They end by the system call alone, so that no destructor of theirs has put their heaps back; their stacks are
  // unmapped when they are joined, being too large to be kept.
  for (int round = 0; round < 5; ++round) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * kMiB);
    pthread_t thread;
    const auto body = [](void*) -> void* {
      for (int i = 0; i < 3000; ++i) {
        void* const block = opaque(annex_malloc(100));
        if (i % 50 != 0) annex_free(block);
      }
      syscall(SYS_exit, 0);
      return nullptr;
    };
    DEMAND(pthread_create(&thread, &attributes, body, nullptr) == 0);
    DEMAND(pthread_join(thread, nullptr) == 0);
    annex_purge();
  }
  return 0;
}
TEST(Taken, FromThreadsThatVanish) {
#if defined(ANNEX_TEST_SANITIZED)
  GTEST_SKIP() << "the sanitizers count threads by their ends";
#endif
  expect_success("taken_from_threads_that_vanish");
}

ANNEX_SCENARIO(two_trimmers) {
  std::atomic<bool> done{false};
  Thread other([&] {
    while (!done) annex_purge();
  });
  with_a_trimmer(2, [](int id) {
    Random random(static_cast<std::uint64_t>(id));
    come_and_go(random, 20 / kSlowdown + 1);
  });
  done = true;
  other.join();
  return 0;
}
TEST(Taken, ByTwo) { expect_success("two_trimmers"); }
