// A process that frees much and then does nothing gives the memory back, without a call that would
// make it, where ANNEX_BACKGROUND=1 says so; else one that goes on does, bit by bit.
//
// The poll has a long deadline and no lower bound: it says whether, not when. Not for sanitizer
// builds, whose own memory is in the resident set.
#include <gtest/gtest.h>
#include <time.h>

#include <cstring>

#include "common/own_memory.h"
#include "common/resident.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

constexpr std::size_t kTotal = 256 * kMiB;

void wait_50_ms() {
  const timespec step{0, 50'000'000};
  nanosleep(&step, nullptr);
}

// 10 s in steps of 50 ms. Nothing here allocates or calls Annex.
bool falls_below(std::size_t bytes) {
  for (int i = 0; i < 200; ++i) {
    if (resident_bytes() < bytes) return true;
    wait_50_ms();
  }
  fprintf(stderr, "resident %zu, wanted below %zu\n", resident_bytes(), bytes);
  return false;
}

struct Hoard {
  OwnMemory own;
  void** blocks;
  std::size_t count;

  explicit Hoard(std::size_t bytes) : count(kTotal / bytes) {
    blocks = static_cast<void**>(own.allocate(count * sizeof(void*)));
    for (std::size_t i = 0; i < count; ++i) {
      blocks[i] = opaque(annex_malloc(bytes));
      DEMAND(blocks[i] != nullptr);
      std::memset(blocks[i], 1, bytes);
    }
    DEMAND(resident_bytes() >= kTotal);
  }
  void free_all() {
    for (std::size_t i = 0; i < count; ++i) annex_free(blocks[i]);
    own.deallocate(blocks, count * sizeof(void*));
  }
};

std::size_t argument_bytes() { return std::strtoull(scenario_argument(), nullptr, 10); }

void expect_given_back(const char* scenario, const char* background = "1") {
  for (const char* bytes : {"64", "1500", "30000", "4000000"}) {
    Launch launch;
    launch.scenario = scenario;
    launch.argument = bytes;
    launch.environment = {{"ANNEX_PURGE_DELAY", "200"}, {"ANNEX_BACKGROUND", background}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << bytes << "-byte blocks: " << describe(outcome);
  }
}

}  // namespace

ANNEX_SCENARIO(idle_after_freeing) {
  Hoard hoard(argument_bytes());
  hoard.free_all();
  return falls_below(kTotal / 4) ? 0 : 1;
}

TEST(Idle, OneThread) { expect_given_back("idle_after_freeing"); }

ANNEX_SCENARIO(idle_thread_beside_idle_main) {
  // The hoarder frees, and stays alive without doing anything.
  static std::atomic<bool> freed{false};
  static std::atomic<bool> done{false};
  Thread hoarder([] {
    Hoard hoard(argument_bytes());
    hoard.free_all();
    freed = true;
    while (!done) wait_50_ms();
  });
  while (!freed) sched_yield();
  const bool fell = falls_below(kTotal / 4);
  done = true;
  return fell ? 0 : 1;
}

TEST(Idle, AThreadThatStays) { expect_given_back("idle_thread_beside_idle_main"); }

ANNEX_SCENARIO(many_idle_threads) {
  // Each has freed 4 MiB; then none of them does anything.
  constexpr int kThreads = 64;
  static std::atomic<int> freed{0};
  static std::atomic<bool> done{false};
  const std::size_t before = resident_bytes();
  std::vector<Thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      OwnMemory own;
      constexpr std::size_t kBlocks = kTotal / kThreads / 1024;
      void** const blocks = static_cast<void**>(own.allocate(kBlocks * sizeof(void*)));
      for (std::size_t k = 0; k < kBlocks; ++k) blocks[k] = std::memset(opaque(annex_malloc(1024)), 1, 1024);
      for (std::size_t k = 0; k < kBlocks; ++k) annex_free(blocks[k]);
      own.deallocate(blocks, kBlocks * sizeof(void*));
      ++freed;
      while (!done) wait_50_ms();
    });
  }
  while (freed < kThreads) sched_yield();
  const bool fell = falls_below(before + kThreads * 700 * kKiB);
  done = true;
  return fell ? 0 : 1;
}

TEST(Idle, ManyThreadsThatStay) { expect_given_back("many_idle_threads"); }

ANNEX_SCENARIO(idle_after_a_thread_ended) {
  Thread([] {
    Hoard hoard(argument_bytes());
    hoard.free_all();
  }).join();
  return falls_below(kTotal / 4) ? 0 : 1;
}

TEST(Idle, AThreadThatEnded) { expect_given_back("idle_after_a_thread_ended"); }

ANNEX_SCENARIO(idle_after_a_remote_free) {
  // Another thread frees what this one allocated, and this one never allocates again.
  Hoard hoard(argument_bytes());
  Thread([&] { hoard.free_all(); }).join();
  return falls_below(kTotal / 4) ? 0 : 1;
}

TEST(Idle, FreedByAnotherThread) { expect_given_back("idle_after_a_remote_free"); }

ANNEX_SCENARIO(purge_at_once) {
  Hoard hoard(argument_bytes());
  hoard.free_all();
  annex_purge();
  if (resident_bytes() < kTotal / 10) return 0;
  fprintf(stderr, "resident %zu\n", resident_bytes());
  return 1;
}

TEST(Idle, PurgeDoesNotWait) { expect_given_back("purge_at_once"); }

ANNEX_SCENARIO(works_after_idling) {
  for (int round = 0; round < 3; ++round) {
    Hoard hoard(argument_bytes());
    hoard.free_all();
    DEMAND(falls_below(kTotal / 4));
  }
  return 0;
}

TEST(Idle, ThePurgedMemoryIsUsedAgain) { expect_given_back("works_after_idling"); }

ANNEX_SCENARIO(goes_on_a_little) {
  Hoard hoard(argument_bytes());
  hoard.free_all();
  const timespec delay{0, 500'000'000};
  nanosleep(&delay, nullptr);
  // Each step brings one large block, and so comes by where memory is given back: 2 MiB at a time.
  for (int step = 0; step < 400; ++step) {
    annex_free(opaque(annex_malloc(200'000)));
    if (resident_bytes() < kTotal / 4) return 0;
  }
  return falls_below(kTotal / 4) ? 0 : 1;  // a support thread may still be at it
}

TEST(Idle, WithoutAPurgerAThreadThatComesByGivesItBack) {
  expect_given_back("goes_on_a_little", "auto");
  expect_given_back("goes_on_a_little", "0");
}
