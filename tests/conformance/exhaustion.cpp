// Exhausted memory: limits of the system and Annex's own. NULL and ENOMEM, and the program goes on.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <new>

#include "api.h"
#include "common/resident.h"

using namespace annex_test;

namespace {

// Allocates blocks of `bytes` until it fails, chained through their first word so that nothing else
// is allocated.
struct Chain {
  void* last = nullptr;
  std::size_t count = 0;

  bool add(std::size_t bytes) {
    void* block = opaque(malloc(bytes));
    if (block == nullptr) return false;
    std::memcpy(block, &last, sizeof last);
    last = block;
    ++count;
    return true;
  }

  void release() {
    while (last != nullptr) {
      void* next;
      std::memcpy(&next, last, sizeof next);
      free(last);
      last = next;
    }
    count = 0;
  }
};

// Fills memory up to the limit with blocks of one size, frees them, and does it again: the second
// time must come about as far as the first. `low` and `high` bound what a fill may hold.
void fill_free_and_go_on(std::size_t bytes, std::size_t low, std::size_t high) {
  std::size_t held[3];
  for (std::size_t& total : held) {
    Chain chain;
    errno = 0;
    while (chain.add(bytes)) {
      SCENARIO_CHECK(chain.count * bytes <= high);
    }
    SCENARIO_CHECK(errno == ENOMEM);
    total = chain.count * bytes;
    SCENARIO_CHECK(total >= low);
    // Exhausted is exhausted for every other call as well, and harms no block.
    errno = 0;
    SCENARIO_CHECK(opaque(calloc(1, 2 * high)) == nullptr && errno == ENOMEM);
    errno = 0;
    SCENARIO_CHECK(opaque(aligned_alloc(4096, 2 * high)) == nullptr && errno == ENOMEM);
    errno = 0;
    SCENARIO_CHECK(opaque(realloc(chain.last, 2 * high)) == nullptr && errno == ENOMEM);
    SCENARIO_CHECK(opaque(::operator new(2 * high, std::nothrow)) == nullptr);
    chain.release();
    void* after = opaque(malloc(bytes));
    SCENARIO_CHECK(after != nullptr);
    std::memset(after, 1, bytes);
    free(after);
  }
  SCENARIO_CHECK(held[1] >= held[0] / 10 * 8);
  SCENARIO_CHECK(held[2] >= held[0] / 10 * 8);
}

std::size_t argument_bytes() { return std::strtoull(scenario_argument(), nullptr, 10); }

constexpr std::size_t kBlockSizes[] = {64, 3000, 30 * kKiB, 200 * kKiB, 3 * kMiB};

// What the library says, once, where its own limit is what refuses.
std::string words_of(const char* limit) {
  return "annex: an allocation fails that would pass ANNEX_MAX_HEAP, " + std::string(limit) + " bytes (said once)\n";
}

void expect_success(const Launch& launch, const std::string& words = "") {
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << launch.scenario << ' ' << launch.argument << ": " << describe(outcome);
  EXPECT_EQ(outcome.err, words) << launch.scenario << ' ' << launch.argument;
}

}  // namespace

ANNEX_SCENARIO(under_a_limit) {
  fill_free_and_go_on(argument_bytes(), 48 * kMiB, 256 * kMiB);
  return 0;
}

TEST(Exhaustion, AddressSpaceLimit) {
  for (std::size_t bytes : kBlockSizes) {
    Launch launch;
    launch.scenario = "under_a_limit";
    launch.argument = std::to_string(bytes);
    launch.address_space = 256 * kMiB;
    expect_success(launch);
  }
}

TEST(Exhaustion, DataLimit) {
  for (std::size_t bytes : kBlockSizes) {
    Launch launch;
    launch.scenario = "under_a_limit";
    launch.argument = std::to_string(bytes);
    launch.data = 192 * kMiB;
    expect_success(launch);
  }
}

ANNEX_SCENARIO(limit_lowered_while_running) {
  // The arena may be reserved already, so allocations may go on: they must only never crash.
  Chain before;
  for (int i = 0; i < 1000; ++i) SCENARIO_CHECK(before.add(5000));
  const rlim_t now = address_space_bytes() + 16 * kMiB;
  const rlimit limit{now, now};
  SCENARIO_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  Chain chain;
  while (chain.count * 2 * kMiB < 512 * kMiB && chain.add(2 * kMiB)) {
  }
  chain.release();
  void* small = opaque(malloc(100));
  SCENARIO_CHECK(small != nullptr);
  free(small);
  errno = 0;
  SCENARIO_CHECK(opaque(malloc(std::size_t{1} << 46)) == nullptr && errno == ENOMEM);
  before.release();
  return 0;
}

TEST(Exhaustion, LimitLoweredWhileRunning) {
  Launch launch;
  launch.scenario = "limit_lowered_while_running";
  expect_success(launch);
}

namespace {
void* reserve_for_the_handler = nullptr;
void handler_frees_the_reserve() {
  free(reserve_for_the_handler);
  reserve_for_the_handler = nullptr;
  std::set_new_handler(nullptr);
}
}  // namespace

ANNEX_SCENARIO(new_handler_helps) {
  reserve_for_the_handler = opaque(malloc(24 * kMiB));
  SCENARIO_CHECK(reserve_for_the_handler != nullptr);
  Chain chain;
  while (chain.add(kMiB)) {
  }
  std::set_new_handler(handler_frees_the_reserve);
  void* block = opaque(::operator new(8 * kMiB));
  SCENARIO_CHECK(reserve_for_the_handler == nullptr);
  std::memset(block, 1, 8 * kMiB);
  ::operator delete(block);
  chain.release();
  return 0;
}

TEST(Exhaustion, NewHandlerThatFreesMemoryIsEnough) {
  Launch launch;
  launch.scenario = "new_handler_helps";
  launch.address_space = 256 * kMiB;
  expect_success(launch);
}

ANNEX_SCENARIO(bad_alloc_is_catchable) {
  Chain chain;
  while (chain.add(kMiB)) {
  }
  while (chain.add(64)) {
  }
  bool thrown = false;
  try {
    opaque(::operator new(4 * kMiB));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  chain.release();
  return thrown ? 0 : 1;
}

TEST(Exhaustion, BadAllocIsThrownWhenNothingIsLeft) {
  Launch launch;
  launch.scenario = "bad_alloc_is_catchable";
  launch.address_space = 256 * kMiB;
  expect_success(launch);
}

// ANNEX_MAX_HEAP

ANNEX_SCENARIO(under_max_heap) {
  // The program's own start-up and the books may take part of the limit.
  fill_free_and_go_on(argument_bytes(), 48 * kMiB, 64 * kMiB);
  return 0;
}

TEST(Exhaustion, MaxHeapBoundsTheHeap) {
  SKIP_ON_GLIBC("has no ANNEX_MAX_HEAP");
  for (const char* limit : {"67108864", "65536K", "64M"}) {
    for (std::size_t bytes : kBlockSizes) {
      Launch launch;
      launch.scenario = "under_max_heap";
      launch.argument = std::to_string(bytes);
      launch.environment = {{"ANNEX_MAX_HEAP", limit}};
      expect_success(launch, words_of("67108864"));
    }
  }
}

ANNEX_SCENARIO(one_block_of) {
  void* block = opaque(malloc(argument_bytes()));
  if (block == nullptr) return errno == ENOMEM ? 10 : 11;
  free(block);
  return 0;
}

TEST(Exhaustion, MaxHeapUnits) {
  SKIP_ON_GLIBC("has no ANNEX_MAX_HEAP");
  struct Case {
    const char* limit;
    std::size_t bytes;
    int exit_code;
  };
  for (const Case& test : {Case{"1G", 900 * kMiB, 0}, Case{"1G", 1100 * kMiB, 10}, Case{"100M", 90 * kMiB, 0},
                           Case{"100M", 110 * kMiB, 10}, Case{"102400K", 90 * kMiB, 0}, Case{"102400K", 110 * kMiB, 10},
                           Case{"104857600", 90 * kMiB, 0}, Case{"104857600", 110 * kMiB, 10}}) {
    Launch launch;
    launch.scenario = "one_block_of";
    launch.argument = std::to_string(test.bytes);
    launch.environment = {{"ANNEX_MAX_HEAP", test.limit}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, test.exit_code) << test.limit << ' ' << test.bytes << ": " << describe(outcome);
    EXPECT_EQ(outcome.err.rfind("annex: an allocation fails that would pass ANNEX_MAX_HEAP", 0) == 0,
              test.exit_code != 0)
        << describe(outcome);
  }
}
