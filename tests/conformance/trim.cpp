// malloc_trim: free memory goes back to the system at once, memory in use is left alone.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "api.h"
#include "common/resident.h"

using namespace annex_test;

namespace {

void trim_after(std::size_t bytes) {
  constexpr std::size_t kTotal = 128 * kMiB;
  malloc_trim(0);
  const std::size_t before = resident_bytes();
  std::vector<void*> blocks(kTotal / bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = opaque(malloc(bytes));
    ASSERT_NE(blocks[i], nullptr);
    std::memset(blocks[i], 1, bytes);
  }
  // Every block of the first sixteenth stays in use.
  const std::size_t kept = blocks.size() / 16;
  for (std::size_t i = 0; i < kept; ++i) fill(blocks[i], bytes, i);
  const std::size_t full = resident_bytes();
  ASSERT_GE(full, before + kTotal - kTotal / 16) << "the blocks are not resident: nothing to trim";
  for (std::size_t i = kept; i < blocks.size(); ++i) free(blocks[i]);
  malloc_trim(0);
  const std::size_t after = resident_bytes();
  EXPECT_LE(after, before + kTotal / 4) << bytes << "-byte blocks, " << full << " before the trim";
  for (std::size_t i = 0; i < kept; ++i) {
    ASSERT_EQ(mismatch(blocks[i], bytes, i), kNoMismatch);
    free(blocks[i]);
  }
}

}  // namespace

TEST(Trim, SmallBlocks) { trim_after(100); }
TEST(Trim, MediumBlocks) { trim_after(3000); }
TEST(Trim, PageSizedBlocks) { trim_after(20 * kKiB); }
TEST(Trim, LargeBlocks) { trim_after(2 * kMiB); }

// Blocks of many sizes, of which one in twenty, anywhere, stays in use: what is held are the pages in which those lie.
TEST(Trim, HoldsThePagesOfWhatIsInUseAlone) {
  constexpr std::size_t kBlocks = 100000;
  malloc_trim(0);
  const std::size_t before = resident_bytes();
  std::vector<char*> blocks(kBlocks);
  const auto size_of = [](std::size_t i) { return 500 + i * 7919 % 1500; };
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks[i] = static_cast<char*>(opaque(malloc(size_of(i))));
    ASSERT_NE(blocks[i], nullptr);
    fill(blocks[i], size_of(i), i);
  }
  const std::size_t full = resident_bytes();
  std::set<std::uintptr_t> pages;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (i * 104729 % kBlocks % 20 != 0) {
      free(blocks[i]);
      blocks[i] = nullptr;
    } else {
      const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(blocks[i]);
      for (std::uintptr_t page = start / 4096; page <= (start + size_of(i) - 1) / 4096; ++page) pages.insert(page);
    }
  }
  malloc_trim(0);
  // Hardened keeps a byte apart for each 16 of a slab.
  const std::size_t states = flavour() == Flavour::kHardened ? (full - before) / 16 : 0;
  EXPECT_LE(resident_bytes(), before + pages.size() * 4096 * 21 / 20 + 6 * kMiB + states);
  // What comes back is whole, and what was kept.
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (blocks[i] == nullptr) {
      blocks[i] = static_cast<char*>(opaque(calloc(1, size_of(i))));
      ASSERT_NE(blocks[i], nullptr);
      ASSERT_EQ(first_nonzero(blocks[i], size_of(i)), kNoMismatch);
      fill(blocks[i], size_of(i), i);
    }
  }
  for (std::size_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(mismatch(blocks[i], size_of(i), i), kNoMismatch);
    free(blocks[i]);
  }
}

// Threads that sleep keep little of what they have freed, whoever calls.
TEST(Trim, ReachesThreadsThatSleep) {
  SKIP_ON_GLIBC("keeps what the arenas of threads hold in pieces");
  constexpr int kThreads = 40;
  constexpr std::size_t kBlocks = 4000;
  static pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, kThreads + 1);
  malloc_trim(0);
  const std::size_t before = resident_bytes();
  pthread_t threads[kThreads];
  const auto body = [](void*) -> void* {
    std::vector<void*> blocks(kBlocks);
    for (void*& block : blocks) {
      block = opaque(malloc(1000));
      std::memset(block, 1, 1000);
    }
    for (void* block : blocks) free(block);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);  // sleeps
    return nullptr;
  };
  for (pthread_t& thread : threads) ASSERT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
  pthread_barrier_wait(&barrier);
  malloc_trim(0);
  // 4 MB were each thread's. Its stack, its heap, a slab or two and, offload, its magazines and its stash.
  EXPECT_LE(resident_bytes(), before + kThreads * (flavour() == Flavour::kHardened ? kMiB : 700 * kKiB));
  pthread_barrier_wait(&barrier);
  for (pthread_t& thread : threads) pthread_join(thread, nullptr);
}

TEST(Trim, SaysWhetherAnythingWasGivenBack) {
  std::vector<void*> blocks(4000);
  for (void*& block : blocks) {
    block = opaque(malloc(4000));
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, 4000);
  }
  for (void* block : blocks) free(block);
  EXPECT_EQ(malloc_trim(0), 1);
}

TEST(Trim, TheHeapWorksAfterwards) {
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> blocks;
    for (std::size_t bytes : {std::size_t{10}, std::size_t{1000}, 30 * kKiB, kMiB}) {
      void* block = opaque(calloc(1, bytes));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(first_nonzero(block, bytes), kNoMismatch);
      fill(block, bytes, 1);
      blocks.push_back(block);
    }
    malloc_trim(0);
    for (void* block : blocks) free(block);
    malloc_trim(4096);
  }
}
