// Limits of the process, also those that it sets itself while it runs: what it can still map, and what malloc still
// gives, follow them, as with the C library's allocator. And what a heap costs beside memory: addresses, locked pages.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "api.h"
#include "common/resident.h"

using namespace annex_test;

namespace {

void limit(decltype(RLIMIT_AS) resource, std::size_t bytes) {
  const rlimit both{bytes, bytes};
  SCENARIO_CHECK(setrlimit(resource, &both) == 0);
}

void expect_success(const char* scenario, const std::string& argument = "") {
  Launch launch;
  launch.scenario = scenario;
  launch.argument = argument;
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << scenario << ' ' << argument << ": " << describe(outcome);
  EXPECT_EQ(outcome.err, "");
}

int deep(int depth) {
  volatile char frame[10000];
  frame[0] = static_cast<char>(depth);
  return depth > 0 ? deep(depth - 1) + frame[0] : 0;
}

void check_that_the_limit_is_followed() {
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(
                     &thread, nullptr, [](void* a) { return opaque(malloc(100)) != nullptr ? a : nullptr; }, nullptr) ==
                 0);
  pthread_join(thread, nullptr);
  void* mapped = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SCENARIO_CHECK(mapped != MAP_FAILED);
  void* within = opaque(malloc(100 * kMiB));
  SCENARIO_CHECK(within != nullptr);
  errno = 0;
  SCENARIO_CHECK(opaque(malloc(3072 * kMiB)) == nullptr && errno == ENOMEM);
  SCENARIO_CHECK(deep(300) != 1);  // the stack grows by 3 MB
  free(within);
}

}  // namespace

ANNEX_SCENARIO(address_space_limited_late) {
  free(opaque(malloc(1)));
  limit(RLIMIT_AS, 2048 * kMiB);
  check_that_the_limit_is_followed();
  return 0;
}

TEST(Limits, AProcessThatLimitsItsOwnAddressSpaceGoesOn) { expect_success("address_space_limited_late"); }

// As prlimit(1) does.
ANNEX_SCENARIO(address_space_limited_from_outside) {
  int ready[2], go[2];
  SCENARIO_CHECK(pipe(ready) == 0 && pipe(go) == 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    free(opaque(malloc(1)));
    SCENARIO_CHECK(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
    check_that_the_limit_is_followed();
    _exit(0);
  }
  SCENARIO_CHECK(read(ready[0], &byte, 1) == 1);
  const rlimit both{2048 * kMiB, 2048 * kMiB};
  SCENARIO_CHECK(prlimit(child, RLIMIT_AS, &both, nullptr) == 0);
  SCENARIO_CHECK(write(go[1], &byte, 1) == 1);
  int status = 0;
  SCENARIO_CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST(Limits, OneThatIsLimitedFromOutsideToo) { expect_success("address_space_limited_from_outside"); }

ANNEX_SCENARIO(address_space_is_small) {
  free(opaque(malloc(1)));
  return address_space_bytes() < 200 * kMiB ? 0 : 1;
}

TEST(Limits, ASmallHeapTakesFewAddresses) { expect_success("address_space_is_small"); }

// What is freed goes back for the program to map.
ANNEX_SCENARIO(freed_addresses_can_be_mapped) {
  limit(RLIMIT_AS, 1024 * kMiB);
  void* blocks[8];
  for (void*& block : blocks) SCENARIO_CHECK((block = opaque(malloc(100 * kMiB))) != nullptr);
  const auto map_much = [] {
    return mmap(nullptr, 600 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  SCENARIO_CHECK(map_much() == MAP_FAILED);
  for (int i = 0; i < 7; ++i) free(blocks[i]);  // the last one stays, behind them all
  malloc_trim(0);
  SCENARIO_CHECK(map_much() != MAP_FAILED);
  free(blocks[7]);
  return 0;
}

TEST(Limits, FreedAddressesCanBeMapped) { expect_success("freed_addresses_can_be_mapped"); }

// Nearly all of a limit is usable, at each size that blocks have; a second time as well, after all was freed.
ANNEX_SCENARIO(most_of_a_limit_is_usable) {
  constexpr std::size_t kLimit = 128 * kMiB;
  const bool by_data = *scenario_argument() == 'd';
  limit(by_data ? RLIMIT_DATA : RLIMIT_AS, kLimit + (by_data ? 0 : address_space_bytes()));
  for (std::size_t bytes : {std::size_t{16}, std::size_t{112}, kKiB, 5 * kKiB, 10 * kKiB, 32 * kKiB, 36 * kKiB,
                            64 * kKiB, 68 * kKiB, 200 * kKiB, kMiB, kMiB + 4 * kKiB}) {
    for (int round = 0; round < 2; ++round) {
      void* last = nullptr;
      std::size_t total = 0;
      while (void* block = opaque(malloc(bytes))) {
        std::memcpy(block, &last, sizeof last);
        last = block;
        total += bytes;
      }
      const std::size_t least = flavour() == Flavour::kOffload ? 90 : 92;  // its tables are 1.6 % more
      if (total < kLimit / 100 * least) {
        dprintf(STDOUT_FILENO, "%zu bytes: %zu MiB\n", bytes, total / kMiB);
        return 1;
      }
      while (last != nullptr) {
        void* next;
        std::memcpy(&next, last, sizeof next);
        free(last);
        last = next;
      }
    }
  }
  return 0;
}

TEST(Limits, MostOfALimitIsUsableAtEachBlockSize) {
  SKIP_ON_GLIBC("has headers");
  if (flavour() == Flavour::kHardened) GTEST_SKIP() << "canaries and guards take their part";
  expect_success("most_of_a_limit_is_usable", "a");
  expect_success("most_of_a_limit_is_usable", "d");
}

namespace {

// Up to a limit that is there; where none is, no more than a gigabyte.
void use_up(std::size_t block) {
  for (std::size_t total = 0; total < 1024 * kMiB && opaque(malloc(block)) != nullptr;) total += block;
}

std::uint64_t arenas_now() {
  annex_stats_t stats;
  SCENARIO_CHECK(annex_stats(&stats) == 0);
  return stats.arenas;
}

// Failing again costs nothing for good: neither another arena nor addresses. (The first time may map metadata for what
// is asked for.)
void fail_often(std::size_t bytes, int times) {
  SCENARIO_CHECK(opaque(malloc(bytes)) == nullptr);
  const std::uint64_t arenas = arenas_now();
  const std::size_t addresses = address_space_bytes();
  for (int i = 0; i < times; ++i) SCENARIO_CHECK(opaque(malloc(bytes)) == nullptr);
  SCENARIO_CHECK(address_space_bytes() <= addresses);
  SCENARIO_CHECK(arenas_now() == arenas);
}

}  // namespace

// First where there is memory left (what was freed, and less than another such block), only not so much as is asked
// for; then where there is none.
ANNEX_SCENARIO(failing_takes_no_addresses) {
  limit(RLIMIT_DATA, 64 * kMiB);
  void* const last = opaque(malloc(kMiB));
  use_up(kMiB);
  free(last);
  for (std::size_t bytes : {3 * kMiB, 5 * kMiB, 100 * kMiB}) fail_often(bytes, 20);
  for (std::size_t bytes = kMiB; bytes >= 16; bytes /= 2) use_up(bytes);
  for (std::size_t bytes : {std::size_t{20000}, 200 * kKiB}) fail_often(bytes, 20);
  return 0;
}

// In a thread that has allocated nothing yet, and whose first block there is no memory for.
ANNEX_SCENARIO(failing_in_a_new_thread_takes_no_addresses) {
  static pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 2);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    pthread_barrier_wait(&barrier);
    fail_often(100, 1000);
    return nullptr;
  };
  SCENARIO_CHECK(pthread_create(&thread, nullptr, body, nullptr) == 0);
  limit(RLIMIT_DATA, 64 * kMiB);
  for (std::size_t bytes = kMiB; bytes >= 16; bytes /= 2) use_up(bytes);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, nullptr);
  return 0;
}

TEST(Limits, FailingTakesNoAddresses) {
  SKIP_ON_GLIBC("makes its arenas of addresses");
  expect_success("failing_takes_no_addresses");
  expect_success("failing_in_a_new_thread_takes_no_addresses");
}

// Under a limit on what is writable the library's own books are small, too.
ANNEX_SCENARIO(half_a_megabyte_of_blocks) {
  for (std::size_t total = 0; total < kMiB / 2; total += 1000) SCENARIO_CHECK(opaque(malloc(1000)) != nullptr);
  return 0;
}

TEST(Limits, AProcessOfFiveMegabytesStarts) {
  Launch launch;
  launch.scenario = "half_a_megabyte_of_blocks";
  launch.data = 5000 * kKiB;  // ulimit -d 5000
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}

// A small ANNEX_RESERVE is no limit.
ANNEX_SCENARIO(a_gigabyte_of_blocks) {
  for (std::size_t total = 0; total < 1024 * kMiB; total += 30000) SCENARIO_CHECK(opaque(malloc(30000)) != nullptr);
  return 0;
}

TEST(Limits, ASmallReserveIsNone) {
  Launch launch;
  launch.scenario = "a_gigabyte_of_blocks";
  launch.environment = {{"ANNEX_RESERVE", "4M"}};
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}

// Before it fails, malloc gives back what it keeps itself, whichever call it is that asks. A part of ANNEX_MAX_HEAP is
// the program's own.
namespace {

constexpr std::size_t kOwnLimit = 8 * kMiB;
constexpr std::size_t kMostOfIt = kOwnLimit / 4 * 3;
void* limited_blocks[kOwnLimit / 1024];

// Sizes of which nearly each one has slabs of its own.
constexpr std::size_t kSizes = 40;
constexpr std::size_t small_size(std::size_t number) { return 16 + 20 * number * number; }

void take_all_of_the_limit() {
  for (std::size_t i = 0; i < std::size(limited_blocks); ++i) {
    limited_blocks[i] = opaque(malloc(i < kSizes ? small_size(i) : 1000));
  }
}

void free_all_blocks() {
  for (void*& block : limited_blocks) free(std::exchange(block, nullptr));
}

void* most_of_the_limit() {
  switch (*scenario_argument()) {
    case 'c':
      return opaque(calloc(1, kMostOfIt));
    case 'a':
      return opaque(aligned_alloc(4096, kMostOfIt));
    case 'r':
      return opaque(realloc(opaque(malloc(100)), kMostOfIt));
    case 'n':
      return opaque(::operator new(kMostOfIt, std::nothrow));
    default:
      return opaque(malloc(kMostOfIt));
  }
}

// In a process with the limit of 8 MiB, once for each call.
void expect_most_of_the_limit(const char* scenario) {
  for (const char* call : {"malloc", "calloc", "aligned_alloc", "realloc", "new"}) {
    Launch launch;
    launch.scenario = scenario;
    launch.argument = call;
    launch.environment = {{"ANNEX_MAX_HEAP", "8M"}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << scenario << ' ' << call << ": " << describe(outcome);
  }
}

}  // namespace

ANNEX_SCENARIO(freed_blocks_make_room_for_a_large_one) {
  take_all_of_the_limit();
  free_all_blocks();
  return most_of_the_limit() != nullptr ? 0 : 1;
}

TEST(Limits, WhatIsKeptForReuseIsGivenBackBeforeMallocFails) {
  SKIP_ON_GLIBC("has no ANNEX_MAX_HEAP");
  expect_most_of_the_limit("freed_blocks_make_room_for_a_large_one");
}

// Each slab's blocks are freed by two threads, so that neither sees alone that it is empty.
ANNEX_SCENARIO(blocks_that_another_thread_freed_make_room) {
  static pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 2);
  pthread_t thread;
  const auto free_every_other = [](void*) -> void* {
    pthread_barrier_wait(&barrier);
    for (std::size_t i = 0; i < std::size(limited_blocks); i += 2) free(std::exchange(limited_blocks[i], nullptr));
    return nullptr;
  };
  SCENARIO_CHECK(pthread_create(&thread, nullptr, free_every_other, nullptr) == 0);
  take_all_of_the_limit();
  pthread_barrier_wait(&barrier);
  pthread_join(thread, nullptr);
  free_all_blocks();
  return most_of_the_limit() != nullptr ? 0 : 1;
}

TEST(Limits, WhatAnotherThreadFreedIsGivenBackToo) {
  SKIP_ON_GLIBC("has no ANNEX_MAX_HEAP");
  expect_most_of_the_limit("blocks_that_another_thread_freed_make_room");
}

// Heaps of threads that have ended: what is freed later goes back, before malloc fails and with malloc_trim.
namespace {

// Runs body(0) ... body(count - 1), each in its own thread, none of which ends before all have done it: so each has a
// heap of its own.
void in_threads_at_once(int count, void (*body)(int)) {
  constexpr int kMost = 64;
  static void (*to_do)(int);
  static pthread_barrier_t all_have_done_it;
  SCENARIO_CHECK(count <= kMost);
  to_do = body;
  pthread_barrier_init(&all_have_done_it, nullptr, static_cast<unsigned>(count));
  const auto run = [](void* number) -> void* {
    to_do(static_cast<int>(reinterpret_cast<std::intptr_t>(number)));
    pthread_barrier_wait(&all_have_done_it);
    return nullptr;
  };
  pthread_t threads[kMost];
  for (std::intptr_t i = 0; i < count; ++i) {
    SCENARIO_CHECK(pthread_create(&threads[i], nullptr, run, reinterpret_cast<void*>(i)) == 0);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
}

}  // namespace

ANNEX_SCENARIO(heaps_of_ended_threads_make_room) {
  in_threads_at_once(20, [](int number) {
    for (int k = 0; k < 300; ++k) limited_blocks[number * 300 + k] = opaque(malloc(1000));
  });
  free_all_blocks();
  return most_of_the_limit() != nullptr ? 0 : 1;
}

TEST(Limits, WhatHeapsOfEndedThreadsHoldIsGivenBackToo) {
  SKIP_ON_GLIBC("has no ANNEX_MAX_HEAP");
  expect_most_of_the_limit("heaps_of_ended_threads_make_room");
}

ANNEX_SCENARIO(heaps_of_ended_threads_are_trimmed) {
  constexpr int kThreads = 50;
  constexpr int kBlocks = 1000;
  static void* blocks[kThreads][kBlocks];
  in_threads_at_once(kThreads, [](int number) {
    for (void*& block : blocks[number]) block = std::memset(opaque(malloc(1000)), 1, 1000);
  });
  const std::size_t full = resident_bytes();
  for (auto& of_thread : blocks) {
    for (void* block : of_thread) free(block);
  }
  malloc_trim(0);
  return resident_bytes() + kThreads * kBlocks * 900 < full ? 0 : 1;
}

TEST(Limits, HeapsOfEndedThreadsAreTrimmed) { expect_success("heaps_of_ended_threads_are_trimmed"); }

// A block of each of many sizes: none of their slabs stays. (Less than the smallest slab for each thread.)
ANNEX_SCENARIO(heaps_of_ended_threads_keep_no_slabs) {
  constexpr int kThreads = 40;
  static void* blocks[kThreads][kSizes];
  in_threads_at_once(kThreads, [](int number) {
    for (std::size_t i = 0; i < kSizes; ++i) blocks[number][i] = opaque(malloc(small_size(i)));
  });
  for (auto& of_thread : blocks) {
    for (void* block : of_thread) free(block);
  }
  malloc_trim(0);
  annex_stats_t stats;
  SCENARIO_CHECK(annex_stats(&stats) == 0);
  if (stats.slabs < kThreads * 64 * kKiB) return 0;
  dprintf(STDOUT_FILENO, "%zu KiB in slabs\n", static_cast<std::size_t>(stats.slabs) / kKiB);
  return 1;
}

TEST(Limits, HeapsOfEndedThreadsKeepNoSlabs) {
  SKIP_ON_GLIBC("has no annex_stats");
  expect_success("heaps_of_ended_threads_keep_no_slabs");
}

// With all memory locked, also what is to come, freed memory goes back and reads as zero again.
ANNEX_SCENARIO(locked_memory_goes_back) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
  void* block = std::memset(opaque(malloc(20 * kMiB)), 1, 20 * kMiB);
  const std::size_t full = resident_bytes();
  free(block);
  malloc_trim(0);
  SCENARIO_CHECK(resident_bytes() + 16 * kMiB < full);
  const char* zeros = static_cast<char*>(opaque(calloc(1, 20 * kMiB)));
  for (std::size_t i = 0; i < 20 * kMiB; i += 512) SCENARIO_CHECK(zeros[i] == 0);
  free(const_cast<char*>(zeros));
  return 0;
}

TEST(Limits, LockedMemoryGoesBack) {
  Launch launch;
  launch.scenario = "locked_memory_goes_back";
  const Outcome outcome = run_scenario(launch);
  if (outcome.exit_code == 77) GTEST_SKIP() << "so much can't be locked here";
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}

// Large blocks of which a page is used come and go: what is known of them goes, too.
ANNEX_SCENARIO(sparse_blocks_leave_nothing) {
  const std::size_t before = resident_bytes();
  static char* blocks[64];
  std::uint64_t random = 88172645463325252;
  for (int i = 0; i < 2000; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    char*& block = blocks[random % 64];
    free(block);
    block = static_cast<char*>(opaque(malloc((random >> 16) % (2048 * kMiB) + 1)));
    if (block != nullptr) *block = 1;
  }
  for (char* block : blocks) free(block);
  malloc_trim(0);
  return resident_bytes() < before + 2 * kMiB ? 0 : 1;
}

TEST(Limits, SparseBlocksLeaveNothing) { expect_success("sparse_blocks_leave_nothing"); }

// A large block that cannot grow where it lies is moved by its pages, not copied, also where more addresses are in use
// than there is memory for: at no moment is its memory there twice.
ANNEX_SCENARIO(large_blocks_are_moved_not_copied) {
  constexpr std::size_t kBlock = 64 * kMiB;
  for (int i = 0; i < 40; ++i) {
    if (opaque(malloc(1024 * kMiB)) == nullptr) return 77;  // nobody touches them
  }
  char* const block = static_cast<char*>(std::memset(opaque(malloc(kBlock)), 1, kBlock));
  SCENARIO_CHECK(opaque(malloc(kBlock)) != nullptr);  // lies behind it
  const std::size_t before = resident_bytes();
  const char* const longer = static_cast<char*>(opaque(realloc(block, 2 * kBlock)));
  SCENARIO_CHECK(longer != nullptr);
  rusage usage;
  SCENARIO_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  SCENARIO_CHECK(static_cast<std::size_t>(usage.ru_maxrss) * kKiB < before + kBlock / 2);
  for (std::size_t i = 0; i < kBlock; i += 512) SCENARIO_CHECK(longer[i] == 1);
  return 0;
}

namespace {

// Not before Linux 5.7, nor in every sandbox.
bool pages_can_be_moved() {
  const auto map = [] { return mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  void* const from = map();
  void* const to = map();
  constexpr int kHow = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  const bool moved = mremap(from, kMiB, kMiB, kHow, to) == to;
  munmap(from, kMiB);
  munmap(to, kMiB);
  return moved;
}

}  // namespace

TEST(Limits, LargeBlocksAreMovedNotCopiedWhereManyAddressesAreInUse) {
  if (flavour() == Flavour::kHardened) GTEST_SKIP() << "copies, as guards stand around each block";
  if (!pages_can_be_moved()) GTEST_SKIP() << "this kernel can't move pages and keep the range";
  Launch launch;
  launch.scenario = "large_blocks_are_moved_not_copied";
  const Outcome outcome = run_scenario(launch);
  if (outcome.exit_code == 77) GTEST_SKIP() << "so many addresses can't be had here";
  EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
}
