// malloc_usable_size: at least what was asked for, stable, and every byte of it the program's.
#include <gtest/gtest.h>

#include <vector>

#include "api.h"

using namespace annex_test;

TEST(UsableSize, NullHasNone) { EXPECT_EQ(malloc_usable_size(opaque(nullptr)), 0u); }

TEST(UsableSize, CoversWhatWasAskedFor) {
  for_each_interesting_size(32 * kMiB, [](std::size_t bytes) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    ASSERT_GE(malloc_usable_size(block), bytes);
    free(block);
  });
}

TEST(UsableSize, EveryUsableByteIsTheProgramsOwn) {
  struct Block {
    void* start;
    std::size_t usable;
  };
  std::vector<Block> blocks;
  for_each_interesting_size(256 * kKiB, [&](std::size_t bytes) {
    void* start = opaque(malloc(bytes));
    ASSERT_NE(start, nullptr);
    blocks.push_back({start, malloc_usable_size(start)});
    fill(start, blocks.back().usable, blocks.size());
  });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(malloc_usable_size(blocks[i].start), blocks[i].usable);
    ASSERT_EQ(mismatch(blocks[i].start, blocks[i].usable, i + 1), kNoMismatch) << i;
  }
  for (const Block& block : blocks) free(block.start);
}

TEST(UsableSize, AlignedBlocks) {
  for (std::size_t alignment = 16; alignment <= 4 * kMiB; alignment *= 2) {
    void* block = opaque(aligned_alloc(alignment, 500));
    ASSERT_NE(block, nullptr);
    const std::size_t usable = malloc_usable_size(block);
    ASSERT_GE(usable, 500u);
    fill(block, usable, alignment);
    void* next = opaque(aligned_alloc(alignment, 500));
    fill(next, malloc_usable_size(next), 1);
    ASSERT_EQ(mismatch(block, usable, alignment), kNoMismatch) << alignment;
    free(block);
    free(next);
  }
}

TEST(UsableSize, WasteIsBounded) {
  SKIP_ON_GLIBC("has no such promise");
  // The promise of the size classes: at most an eighth lost above 128 bytes. Large blocks may round
  // to a page.
  for_each_interesting_size(16 * kMiB, [](std::size_t bytes) {
    if (bytes <= 128) return;
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    const std::size_t usable = malloc_usable_size(block);
    EXPECT_LE((usable - bytes) * 8, usable) << bytes << " takes " << usable;
    free(block);
  });
}
