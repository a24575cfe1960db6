// A process that frees much and then does nothing gives the memory back, without a call that would
// make it, where it has several threads or ANNEX_BACKGROUND=1 says so; else one that goes on does, bit by bit.
//
// Not for sanitizer builds, whose own memory is in the resident set.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "common/flavour.h"
#include "common/own_memory.h"
#include "common/scenario.h"
#include "stress/harness.h"
#include "stress/waiting.h"

using namespace annex_test;

namespace {

constexpr std::size_t kTotal = 256 * kMiB;

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
  // All but one in twenty, here and there.
  void free_most() {
    Random random(1);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (random.below(20) == 0) {
        blocks[kept++] = blocks[i];
      } else {
        annex_free(blocks[i]);
      }
    }
    count = kept;
  }
};

std::size_t argument_bytes() { return std::strtoull(scenario_argument(), nullptr, 10); }

void expect_given_back(const char* scenario, const char* background = "1",
                       std::initializer_list<const char*> sizes = {"64", "1500", "30000", "4000000"}) {
  for (const char* bytes : sizes) {
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

TEST(Idle, AThreadThatStays) {
  expect_given_back("idle_thread_beside_idle_main");
  expect_given_back("idle_thread_beside_idle_main", "auto");
}

ANNEX_SCENARIO(idle_with_holes) {
  // One block in twenty stays in use, here and there; another thread is there, and does nothing either.
  static std::atomic<bool> done{false};
  static std::atomic<bool> there{false};
  Thread other([] {
    annex_free(opaque(annex_malloc(100)));
    there = true;
    while (!done) wait_50_ms();
  });
  while (!there) sched_yield();
  Hoard hoard(argument_bytes());
  hoard.free_most();
  const bool fell = falls_below(kTotal / 2);
  for (std::size_t i = 0; i < hoard.count; ++i) {
    const char* const block = static_cast<const char*>(hoard.blocks[i]);
    for (std::size_t k = 0; k < argument_bytes(); ++k) DEMAND(block[k] == 1);
  }
  hoard.free_all();
  done = true;
  return fell ? 0 : 1;
}

TEST(Idle, HolesOfAThreadThatSleeps) { expect_given_back("idle_with_holes", "auto", {"1500", "4000"}); }

namespace {

// Reads a thread's status, without allocating.
struct Status {
  explicit Status(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[std::max<ssize_t>(length, 0)] = '\0';
  }
  bool is_purgers() const { return strstr(text, "Name:\tannex-purge\n") != nullptr; }
  // How often it has gone to sleep so far.
  long sleeps() const {
    const char* const count = strstr(text, "\nvoluntary_ctxt_switches:");
    DEMAND(count != nullptr);
    return strtol(strchr(count, ':') + 1, nullptr, 10);
  }
  char text[4096] = "";
};

// The path of the purger's status; false where there is no such thread.
bool find_purger(char (&path)[64]) {
  DIR* const tasks = opendir("/proc/self/task");
  DEMAND(tasks != nullptr);
  bool found = false;
  while (const dirent* const task = readdir(tasks)) {
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task->d_name);
    if ((found = Status(path).is_purgers())) break;
  }
  closedir(tasks);
  return found;
}

}  // namespace

ANNEX_SCENARIO(comes_back_with_little) {
  // The program's only thread frees most of what it has, rests, and then takes and frees one block after the other.
  Hoard hoard(argument_bytes());
  hoard.free_most();
  for (int i = 0; i < 24; ++i) wait_50_ms();
  for (int i = 0; i < 200000; ++i) annex_free(opaque(annex_malloc(16 + i % 1024)));
  return falls_below(kTotal / 2) ? 0 : 1;
}

TEST(Idle, OneThreadThatGoesOnWithLittle) { expect_given_back("comes_back_with_little", "auto", {"1500"}); }

ANNEX_SCENARIO(purger_sleeps) {
  static std::atomic<bool> there{false};
  Thread other([] {
    Hoard hoard(1500);
    there = true;
    pause();
  });
  while (!there) sched_yield();
  char path[64];
  DEMAND(find_purger(path));
  // Threads that do nothing: at some time it stops waking up.
  for (int tries = 0; tries < 20; ++tries) {
    const long before = Status(path).sleeps();
    for (int i = 0; i < 20; ++i) wait_50_ms();
    if (Status(path).sleeps() == before) _exit(0);
  }
  return 1;
}

ANNEX_SCENARIO(late_thread) {
  // The purger sleeps without a timer when a thread gets its first heap, frees most of it, and does nothing any more.
  static std::atomic<int> step{0};
  Thread early([] {
    Hoard hoard(1500);
    hoard.free_all();
    step = 1;
    pause();
  });
  Thread late([] {
    while (step < 2) wait_50_ms();
    OwnMemory own;
    constexpr std::size_t kBlocks = kTotal / 1024;
    void** const blocks = static_cast<void**>(own.allocate(kBlocks * sizeof(void*)));
    for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = std::memset(opaque(annex_malloc(1000)), 1, 1000);
    for (std::size_t i = 0; i < kBlocks; ++i) {
      if (i % 256 != 0) annex_free(blocks[i]);
    }
    step = 3;
    pause();
  });
  while (step < 1) wait_50_ms();
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 40; ++i) wait_50_ms();
  step = 2;
  while (step < 3) wait_50_ms();
  _exit(falls_below(before + kTotal / 4) ? 0 : 1);
}

TEST(Idle, AThreadThatComesLate) { expect_given_back("late_thread", "auto", {"0"}); }

TEST(Idle, TheThreadThatGivesBackSleeps) { expect_given_back("purger_sleeps", "auto", {"0"}); }

ANNEX_SCENARIO(purger_sleeps_without_barriers) {
  // Whoever starts the program has taken membarrier from it, without which no heap can be taken from its thread.
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), const_cast<sock_filter*>(filter)};
  DEMAND(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  DEMAND(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  execl("/proc/self/exe", "/proc/self/exe", "--scenario=purger_sleeps", scenario_argument(), nullptr);
  return 1;
}

TEST(Idle, TheThreadThatGivesBackSleepsWithoutBarriers) {
#if defined(ANNEX_TEST_SANITIZED)
  GTEST_SKIP() << "the sanitizers need membarrier";
#endif
  expect_given_back("purger_sleeps_without_barriers", "auto", {"0"});
}

namespace {

// Many threads that each do some work, and then nothing any more. What they keep falls to so much each, once ask() has
// been called.
constexpr int kManyThreads = 64;
template <class Work, class Ask>
int many_that_stay(std::size_t most_each, Work work, Ask ask) {
  static std::atomic<int> ready{0};
  static std::atomic<bool> done{false};
  const std::size_t before = resident_bytes();
  std::vector<Thread> threads;
  for (int i = 0; i < kManyThreads; ++i) {
    threads.emplace_back([=] {
      work(i);
      ++ready;
      while (!done) wait_50_ms();
    });
  }
  while (ready < kManyThreads) sched_yield();
  ask();
  const bool fell = falls_below(before + kManyThreads * most_each);
  done = true;
  return fell ? 0 : 1;
}
template <class Work>
int many_that_stay(std::size_t most_each, Work work) {
  return many_that_stay(most_each, work, [] {});
}

}  // namespace

ANNEX_SCENARIO(many_idle_threads) {
  // Each has freed 4 MiB; then none of them does anything.
  return many_that_stay(700 * kKiB, [](int) {
    OwnMemory own;
    constexpr std::size_t kBlocks = kTotal / kManyThreads / 1024;
    void** const blocks = static_cast<void**>(own.allocate(kBlocks * sizeof(void*)));
    for (std::size_t k = 0; k < kBlocks; ++k) blocks[k] = std::memset(opaque(annex_malloc(1024)), 1, 1024);
    for (std::size_t k = 0; k < kBlocks; ++k) annex_free(blocks[k]);
    own.deallocate(blocks, kBlocks * sizeof(void*));
  });
}

TEST(Idle, ManyThreadsThatStay) { expect_given_back("many_idle_threads"); }

ANNEX_SCENARIO(many_sleepers) {
  // Each has freed 4 MiB, and what it took of many other sizes. The argument: whether the main thread then asks for the
  // memory, or somebody gives it back unasked.
  // Of each size a block may stay, and some pages are the thread's own. Hardened: a part of its quarantine, too.
  const std::size_t most = flavour() == Flavour::kHardened ? 700 * kKiB : 220 * kKiB;
  const auto work = [](int) {
    OwnMemory own;
    constexpr std::size_t kBlocks = 8192;
    void** const blocks = static_cast<void**>(own.allocate(kBlocks * sizeof(void*)));
    for (std::size_t bytes = 64; bytes <= 16384; bytes *= 2) {
      for (std::size_t k = 0; k < 524288 / bytes; ++k) blocks[k] = std::memset(opaque(annex_malloc(bytes)), 1, bytes);
      for (std::size_t k = 0; k < 524288 / bytes; ++k) annex_free(blocks[k]);
    }
    own.deallocate(blocks, kBlocks * sizeof(void*));
  };
  return many_that_stay(most, work, [] {
    if (strcmp(scenario_argument(), "asks") == 0) annex_purge();
  });
}

TEST(Idle, WhatManySleepersKeep) { expect_given_back("many_sleepers", "1", {"unasked"}); }

TEST(Idle, WhatManySleepersKeepGoesBackByACall) {
  Launch launch;
  launch.scenario = "many_sleepers";
  launch.argument = "asks";
  launch.environment = {{"ANNEX_PURGE_DELAY", "1000000"}};
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}

ANNEX_SCENARIO(idle_with_few_blocks_each) {
  // Each has freed all of its blocks, in any order: the last ones, which the hardened flavour holds back, lie in many
  // slabs.
  const std::size_t bytes = argument_bytes();
  return many_that_stay(90 * kKiB, [=](int thread) {
    OwnMemory own;
    const std::size_t count = 2 * kMiB / bytes;
    void** const blocks = static_cast<void**>(own.allocate(count * sizeof(void*)));
    for (std::size_t k = 0; k < count; ++k) blocks[k] = std::memset(opaque(annex_malloc(bytes)), 1, bytes);
    Random random(static_cast<std::uint64_t>(thread));
    for (std::size_t k = count; k > 1; --k) std::swap(blocks[k - 1], blocks[random.below(k)]);
    for (std::size_t k = 0; k < count; ++k) annex_free(blocks[k]);
    own.deallocate(blocks, count * sizeof(void*));
  });
}

TEST(Idle, WhatThreadsThatStayHaveFreedLast) {
  expect_given_back("idle_with_few_blocks_each", "1", {"64", "250", "1000", "8000", "30000"});
}

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
