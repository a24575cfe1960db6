// malloc_trim: free memory goes back to the system at once, memory in use is left alone.
#include <gtest/gtest.h>

#include <cstring>
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
