// Right use that the hardened flavour must not take for wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/expect_success.h"
#include "common/resident.h"
#include "hardened/misuse.h"

using namespace annex_test;

namespace {

// Allocates so many blocks of the size, and frees them.
void use(std::size_t count, std::size_t bytes) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = opaque(malloc(bytes));
  for (void* block : blocks) free(block);
}

}  // namespace

// Threads that ask for their first blocks of no bytes at the same moment each make room for them, out of memory that
// was in use before. What all but one of them give back is handed out again.
ANNEX_SCENARIO(first_empty_blocks_at_once) {
  constexpr int kThreads = 4;
  use(8000, 1000);
  std::atomic<int> arrived = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      free(opaque(malloc(16)));
      ++arrived;
      while (arrived < kThreads) {
      }
      free(opaque(malloc(0)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  use(400'000, 72);  // more than there is
  return 0;
}
TEST(RightUse, FirstEmptyBlocksAtOnce) {
  for (int i = 0; i < 20; ++i) {
    Launch launch;
    launch.scenario = "first_empty_blocks_at_once";
    const Outcome outcome = run_scenario(launch);
    ASSERT_EQ(outcome.exit_code, 0) << describe(outcome);
  }
}

// What is known of larger blocks takes little beside them: a byte for each 256.
ANNEX_SCENARIO(memory_of_larger_blocks) {
  constexpr std::size_t kCount = 131072;
  constexpr std::size_t kSize = 1024;  // of the class, with the canary
  static void* blocks[kCount];
  std::memset(blocks, 1, sizeof blocks);
  use(1000, kSize - 8);
  const std::size_t before = resident_bytes();
  for (void*& block : blocks) block = std::memset(opaque(malloc(kSize - 8)), 1, kSize - 8);
  const std::size_t taken = resident_bytes() - before;
  SCENARIO_CHECK(taken < kCount * kSize / 32 * 33 + (std::size_t{2} << 20));
  for (void* block : blocks) free(block);
  return 0;
}
TEST(RightUse, MemoryOfLargerBlocks) {
#if defined(ANNEX_TEST_SANITIZED)
  GTEST_SKIP() << "the sanitizers' own memory counts as resident";
#endif
  expect_success("memory_of_larger_blocks");
}
