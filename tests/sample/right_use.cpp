// Sampled blocks are blocks like others to a program that uses them well, and other faults stay its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>

#include "annex/annex.h"
#include "common/expect_success.h"
#include "common/opaque.h"
#include "sample/sampled.h"

using namespace annex_test;

namespace {

void expect_success_with_samples(const char* scenario) {
  const Outcome outcome = run_with_samples(scenario);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  EXPECT_EQ(outcome.err, "") << describe(outcome);
}

}  // namespace

ANNEX_SCENARIO(sampled_used) {
  for (const std::size_t bytes : {1, 15, 16, 100, 1000, 4000, 4096}) {
    char* block = take_sampled(bytes);
    SCENARIO_CHECK(annex_usable_size(block) == bytes);
    SCENARIO_CHECK(reinterpret_cast<std::uintptr_t>(block) % 16 == 0);
    std::memset(block, 7, bytes);
    char* larger = static_cast<char*>(annex_realloc(block, bytes + 5000));
    SCENARIO_CHECK(larger != nullptr && larger != block);
    for (std::size_t i = 0; i < bytes; ++i) SCENARIO_CHECK(larger[i] == 7);
    char* smaller = static_cast<char*>(annex_realloc(larger, bytes));
    for (std::size_t i = 0; i < bytes; ++i) SCENARIO_CHECK(smaller[i] == 7);
    annex_free(smaller);
  }
  return 0;
}
TEST(RightUse, OfOneBlock) { expect_success_with_samples("sampled_used"); }

// A small arena's reach (pages/arena.h) goes on behind it, where sampled blocks might lie.
TEST(RightUse, BesideASmallArena) {
  for (const char* reserve : {"64M", "4G", "64G"}) {
    Launch launch;
    launch.scenario = "sampled_used";
    launch.environment = {{"ANNEX_SAMPLE", "1000"}, {"ANNEX_RESERVE", reserve}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << reserve << describe(outcome);
  }
}

// Their pages are used again, and read as zero then.
ANNEX_SCENARIO(sampled_many_times) {
  for (int sampled = 0; sampled < 280;) {
    char* block = static_cast<char*>(opaque(annex_calloc(1, 200)));
    for (int i = 0; i < 200; ++i) SCENARIO_CHECK(block[i] == 0);
    std::memset(block, 1, 200);
    const std::size_t at = reinterpret_cast<std::uintptr_t>(block) % 4096;
    if ((at == 0 || at == (4096 - 200) / 16 * 16) && is_sampled(block)) ++sampled;
    annex_free(block);
  }
  return 0;
}
TEST(RightUse, OfMoreBlocksThanPages) { expect_success_with_samples("sampled_many_times"); }

ANNEX_SCENARIO(sampled_aligned) {
  for (const std::size_t alignment : {32, 256, 4096}) {
    int sampled = 0;
    while (sampled < 8) {
      void* block = opaque(annex_aligned_alloc(alignment, 100));
      SCENARIO_CHECK(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      sampled += is_sampled(block);
      annex_free(block);
    }
  }
  return 0;
}
TEST(RightUse, OfAlignedBlocks) { expect_success_with_samples("sampled_aligned"); }

// A block that is sampled within half a second, or nullptr.
namespace {
void* sampled_soon() {
  timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    void* block = opaque(annex_aligned_alloc(32, 100));
    SCENARIO_CHECK(block != nullptr);
    if (is_sampled(block)) return block;
    annex_free(block);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 500);
  return nullptr;
}
}  // namespace

// More blocks in use than there are pages, 256: the others come from elsewhere.
ANNEX_SCENARIO(sampled_all_in_use) {
  static void* blocks[257];
  int sampled = 0;
  while (sampled < 257 && (blocks[sampled] = sampled_soon()) != nullptr) ++sampled;
  SCENARIO_CHECK(sampled > 128 && sampled <= 256);  // libc may have some
  for (int i = 0; i < sampled; ++i) annex_free(blocks[i]);
  SCENARIO_CHECK(sampled_soon() != nullptr);
  return 0;
}
TEST(RightUse, OfAllPages) { expect_success_with_samples("sampled_all_in_use"); }

ANNEX_SCENARIO(sampled_and_forked) {
  char* block = take_sampled(40);
  std::memset(block, 3, 40);
  const pid_t child = fork();
  SCENARIO_CHECK(child >= 0);
  if (child == 0) {
    SCENARIO_CHECK(block[39] == 3);
    annex_free(block);
    annex_free(take_sampled(40));
    _exit(0);
  }
  int status = 1;
  SCENARIO_CHECK(waitpid(child, &status, 0) == child && status == 0);
  SCENARIO_CHECK(block[39] == 3);
  annex_free(block);
  return 0;
}
TEST(RightUse, InParentAndChild) { expect_success_with_samples("sampled_and_forked"); }

// --- faults that are none of ours ------------------------------------------------------------------------------------

namespace {
void fault() { *static_cast<volatile char*>(opaque(reinterpret_cast<void*>(16))) = 1; }
}  // namespace

ANNEX_SCENARIO(fault_of_the_programs) {
  take_sampled(40);
  signal(SIGSEGV, SIG_DFL);
  fault();
  return 0;
}
ANNEX_SCENARIO(fault_with_our_handler) {
  take_sampled(40);
  fault();
  return 0;
}
ANNEX_SCENARIO(fault_that_was_sent) {
  take_sampled(40);
  raise(SIGSEGV);
  return 0;
}
ANNEX_SCENARIO(fault_that_is_handled) {
  take_sampled(40);
  signal(SIGSEGV, [](int) { _exit(7); });
  fault();
  return 0;
}
TEST(RightUse, OtherFaultsAreTheProgramsOwn) {
#ifdef ANNEX_TEST_SANITIZED
  GTEST_SKIP() << "the sanitizer handles them";
#endif
  for (const char* scenario : {"fault_of_the_programs", "fault_with_our_handler", "fault_that_was_sent"}) {
    const Outcome outcome = run_with_samples(scenario);
    EXPECT_EQ(outcome.signal, SIGSEGV) << scenario << describe(outcome);
    EXPECT_EQ(outcome.err, "") << scenario;
  }
  EXPECT_EQ(run_with_samples("fault_that_is_handled").exit_code, 7);
}

ANNEX_SCENARIO(sampled_none) {
  for (int i = 0; i < 100000; ++i) {
    void* block = opaque(annex_aligned_alloc(32, 100));
    SCENARIO_CHECK(i % 100 != 0 || !is_sampled(block));
    annex_free(block);
  }
  return 0;
}
TEST(RightUse, NoneUnlessAskedFor) { expect_success("sampled_none"); }
