// free: NULL, errno, any order, and the sized forms of C23.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "api.h"
#include "common/random.h"

using namespace annex_test;

TEST(Free, NullIsIgnored) {
  errno = 17;
  free(opaque(nullptr));
  EXPECT_EQ(errno, 17);
}

TEST(Free, PreservesErrno) {
  // The large ones make the allocator call the system.
  for (std::size_t bytes : {std::size_t{0}, std::size_t{24}, 5 * kKiB, 300 * kKiB, 3 * kMiB, 200 * kMiB}) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    errno = 4242;
    free(block);
    EXPECT_EQ(errno, 4242) << bytes;
  }
}

TEST(Free, AnyOrder) {
  Random random(7);
  std::vector<void*> blocks;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bytes = random.chance(2) ? random.below(200 * kKiB) : random.below(700);
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    fill(block, bytes < 64 ? bytes : 64, static_cast<std::uint64_t>(i));
    blocks.push_back(block);
  }
  for (std::size_t left = blocks.size(); left > 0; --left) {
    const std::size_t at = random.below(left);
    free(blocks[at]);
    blocks[at] = blocks[left - 1];
  }
}

TEST(Free, BlocksSurviveFreesAroundThem) {
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) {
    void* block = opaque(malloc(96));
    ASSERT_NE(block, nullptr);
    fill(block, 96, static_cast<std::uint64_t>(i));
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) free(blocks[i]);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    ASSERT_EQ(mismatch(blocks[i], 96, i), kNoMismatch);
    free(blocks[i]);
  }
}

TEST(Free, CfreeIsFree) {
  if (cfree == nullptr) {
    ASSERT_TRUE(on_glibc());
    GTEST_SKIP() << "glibc: cfree is not linkable any more";
  }
  cfree(opaque(nullptr));
  void* block = opaque(malloc(100));
  fill(block, 100, 1);
  errno = 4242;
  cfree(block);
  EXPECT_EQ(errno, 4242);
}

TEST(Free, FreeSizedTakesBlocksOfMallocCallocRealloc) {
  SKIP_ON_GLIBC("has no free_sized yet");
  ASSERT_NE(free_sized, nullptr);
  free_sized(opaque(nullptr), 10);
  for_each_interesting_size(4 * kMiB, [](std::size_t bytes) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    fill(block, bytes, bytes);
    errno = 4242;
    free_sized(block, bytes);
    ASSERT_EQ(errno, 4242);
  });
  free_sized(opaque(calloc(10, 10)), 100);
  free_sized(opaque(realloc(malloc(10), 1000)), 1000);
}

TEST(Free, FreeAlignedSizedTakesBlocksOfAlignedAlloc) {
  SKIP_ON_GLIBC("has no free_aligned_sized yet");
  ASSERT_NE(free_aligned_sized, nullptr);
  free_aligned_sized(opaque(nullptr), 64, 10);
  for (std::size_t alignment = 8; alignment <= 4 * kMiB; alignment *= 2) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, alignment, 3 * alignment + 5}) {
      void* block = opaque(aligned_alloc(alignment, bytes));
      ASSERT_NE(block, nullptr);
      errno = 4242;
      free_aligned_sized(block, alignment, bytes);
      ASSERT_EQ(errno, 4242);
    }
  }
}

TEST(Free, SizedFreesMakeMemoryReusable) {
  SKIP_ON_GLIBC("has no free_sized yet");
  // 16 GiB through the sized frees: a form that only pretends to free cannot pass.
  for (int i = 0; i < 4096; ++i) {
    void* plain = opaque(malloc(2 * kMiB));
    ASSERT_NE(plain, nullptr);
    *static_cast<volatile char*>(plain) = 1;
    free_sized(plain, 2 * kMiB);
    void* aligned = opaque(aligned_alloc(4096, 2 * kMiB));
    ASSERT_NE(aligned, nullptr);
    *static_cast<volatile char*>(aligned) = 1;
    free_aligned_sized(aligned, 4096, 2 * kMiB);
  }
}

// A program may copy bytes that it never wrote. What a free block holds by which a second free of it is seen must not
// get back to its place by way of a large block there, and of a copy of that.
TEST(Free, OfBlocksIntoWhichUnwrittenBytesWereCopied) {
  SKIP_ON_GLIBC("puts blocks of these sizes elsewhere");
  constexpr std::size_t kBlocks = 64;
  constexpr std::size_t kWords = 4;
  struct Place {
    void* start;
    std::uint64_t words[kWords];
  };
  std::vector<Place> places(kBlocks);
  std::vector<void*> blocks(kBlocks);
  int met = 0;
  for (int round = 0; round < 8; ++round) {
    for (void*& block : blocks) block = opaque(malloc(32 * kKiB));
    for (void* block : blocks) free(block);
    for (Place& place : places) {
      place.start = opaque(malloc(64 * kKiB));
      memcpy(place.words, place.start, sizeof place.words);
    }
    for (Place& place : places) free(place.start);
    for (void*& block : blocks) {
      block = opaque(malloc(32 * kKiB));
      for (const Place& place : places) {
        if (place.start != block) continue;
        memcpy(block, place.words, sizeof place.words);
        ++met;
      }
    }
    for (void* block : blocks) free(block);
  }
  EXPECT_GT(met, 0);
}
