// Writes and reads where a program must not: behind blocks, in front of them, in freed ones, in empty ones.
#include <gtest/gtest.h>
#include <malloc.h>

#include "common/expect_success.h"
#include "hardened/misuse.h"

using namespace annex_test;

// --- behind a block --------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(a_byte_behind) {
  const std::size_t bytes = argument_bytes();
  char* block = static_cast<char*>(opaque(malloc(bytes)));
  reached();
  block[malloc_usable_size(block)] ^= 1;
  free(opaque(block));
  return survived();
}
TEST(Writes, AByteBehind) {
  expect_found_for({1, 15, 16, 24, 64, 200, 256, 1000, 1024, 3000, 5000, 30000, 40000, 100000}, "a_byte_behind",
                   kBehind);
}
// What was asked for is what may be used: to the byte in blocks of up to 2 KiB.
TEST(Writes, NoBlockHasMoreRoomThanWasAskedFor) {
  for (std::size_t bytes = 1; bytes <= 2040; ++bytes) {
    void* block = opaque(malloc(bytes));
    ASSERT_EQ(malloc_usable_size(block), bytes);
    free(block);
  }
  for (std::size_t bytes : {5000, 9000, 20000, 32000, 70000, 3000000}) {
    void* block = opaque(malloc(bytes));
    EXPECT_LT(malloc_usable_size(block), bytes + 8) << bytes;
    free(block);
  }
}

ANNEX_SCENARIO(a_string_one_too_long) {
  char* block = static_cast<char*>(opaque(malloc(32)));
  reached();
  block[32] = 0;
  free(opaque(block));
  return survived();
}
TEST(Writes, AZeroBehind) { expect_found("a_string_one_too_long", kBehind); }

ANNEX_SCENARIO(behind_and_resized) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  reached();
  block[argument_bytes()] ^= 1;
  opaque(realloc(opaque(block), argument_bytes() + 1));
  return survived();
}
TEST(Writes, BehindABlockThatIsResized) { expect_found_for({20, 1000, 40000}, "behind_and_resized", kBehind); }

ANNEX_SCENARIO(behind_a_large_block) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  std::memset(block, 1, argument_bytes());
  reached();
  static_cast<char*>(opaque(block))[argument_bytes()] = 1;
  return survived();
}
TEST(Writes, BehindALargeBlock) {
  for (const char* bytes : {"65536", "1048576", "67108864"}) expect_fault("behind_a_large_block", bytes);
}

ANNEX_SCENARIO(before_a_large_block) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  reached();
  static_cast<char*>(opaque(block))[-1] = 1;
  return survived();
}
TEST(Writes, BeforeALargeBlock) {
  for (const char* bytes : {"40000", "65536", "1048576", "67108864"}) expect_fault("before_a_large_block", bytes);
}

// --- in a freed block ------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(written_after_free) {
  const std::size_t bytes = argument_bytes();
  const std::size_t at = bytes / 2 < 100 ? bytes / 2 : 100;
  // Every fifth stays in use: a slab that becomes empty is cleared, and not looked at.
  char* blocks[200];
  for (char*& some : blocks) some = static_cast<char*>(opaque(malloc(bytes)));
  for (int i = 0; i < 200; ++i) {
    if (i % 5 != 0) free(blocks[i]);
  }
  char* block = blocks[101];
  reached();
  static_cast<char*>(opaque(block))[at] = 1;
  go_on(bytes);
  return survived();
}
TEST(Writes, AfterFree) { expect_found_for({1, 16, 64, 200, 1000, 5000, 50000}, "written_after_free", kAfter); }

// At the time when it is a link of a list.
ANNEX_SCENARIO(a_list_overwritten) {
  char* blocks[5000];
  for (char*& block : blocks) block = static_cast<char*>(opaque(malloc(64)));
  for (char* block : blocks) free(block);
  reached();
  void* target[8] = {};
  for (int i = 0; i < 4000; ++i) std::memcpy(opaque(blocks[i]), target, sizeof(void*));
  for (int i = 0; i < 20000; ++i) opaque(malloc(64));
  return survived();
}
TEST(Writes, InAListOfFreeBlocks) { expect_found("a_list_overwritten", kAfter); }

ANNEX_SCENARIO(a_large_block_read_after_free) {
  volatile char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  block[100] = 1;
  free(const_cast<char*>(block));
  reached();
  return block[100] == 0 ? survived() : 1;
}
TEST(Writes, ALargeBlockIsGoneWhenItIsFreed) {
  for (const char* bytes : {"200000", "1048576", "67108864"}) expect_fault("a_large_block_read_after_free", bytes);
}

TEST(Writes, WhatIsFreedIsZero) {
  SKIP_WITH_TAGS();
  for (std::size_t bytes : {1, 64, 200, 1000, 5000, 30000, 100000}) {
    char* block = static_cast<char*>(opaque(malloc(bytes)));
    std::memset(block, 1, bytes);
    free(block);
    EXPECT_EQ(first_nonzero(opaque(block), bytes), kNoMismatch) << bytes;
  }
}

TEST(Writes, WhatIsHandedOutIsZero) {
  for (std::size_t bytes : {1, 64, 200, 1000, 5000, 30000, 100000, 1000000}) {
    for (int i = 0; i < 2000; ++i) {
      char* block = static_cast<char*>(opaque(malloc(bytes)));
      ASSERT_EQ(first_nonzero(block, bytes), kNoMismatch) << bytes;
      std::memset(block, 1, bytes < 5000 ? bytes : 5000);
      free(block);
    }
  }
}

// --- in an empty block -----------------------------------------------------------------------------------------------

ANNEX_SCENARIO(an_empty_block_written) {
  char* block = static_cast<char*>(opaque(malloc(0)));
  reached();
  static_cast<char*>(opaque(block))[0] = 1;
  return survived();
}
TEST(Writes, InAnEmptyBlock) { expect_fault("an_empty_block_written"); }

ANNEX_SCENARIO(an_empty_block_read) {
  volatile char* block = static_cast<char*>(opaque(malloc(0)));
  reached();
  return block[0] == 0 ? survived() : 1;
}
TEST(Writes, AnEmptyBlockCannotBeRead) { expect_fault("an_empty_block_read"); }

// --- large alignments ------------------------------------------------------------------------------------------------

// What lies before an aligned block is as clean, when it has another use, as the heap believes.
TEST(Writes, WhatLayBeforeAnAlignedBlockIsCleanAfterwards) {
  constexpr std::size_t kAlignment = 1 << 20;
  for (int round = 0; round < 200; ++round) {
    void* small[64];
    for (void*& block : small) std::memset(block = opaque(malloc(30000)), 1, 30000);
    for (void* block : small) free(block);
    void* aligned = opaque(aligned_alloc(kAlignment, 300000));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % kAlignment, 0u);
    free(aligned);
  }
  malloc_trim(0);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(first_nonzero(opaque(malloc(20000)), 20000), kNoMismatch);
}

// --- what is left of a block's data ----------------------------------------------------------------------------------

// How many of the first bytes are the old data's in blocks that have been freed and are handed out again.
static std::size_t old_bytes(std::size_t bytes, std::size_t first) {
  static char* blocks[1000];
  for (char*& block : blocks) {
    block = static_cast<char*>(opaque(malloc(bytes)));
    std::memset(block, 'x', bytes);
  }
  for (char* block : blocks) free(opaque(block));
  std::size_t old = 0;
  for (char*& block : blocks) {
    block = static_cast<char*>(opaque(malloc(bytes)));
    for (std::size_t i = 0; i < first; ++i) old += block[i] == 'x';
  }
  for (char* block : blocks) free(block);
  return old;
}

TEST(Writes, NothingOldIsLeft) {
  for (std::size_t bytes : {40, 200, 249, 1000, 5000, 30000}) EXPECT_EQ(old_bytes(bytes, bytes), 0u) << bytes;
}

// ANNEX_ZERO_FREED=0: of blocks of more than 256 bytes, with the canary, only the first 128.
ANNEX_SCENARIO(not_all_zeroed) {
  for (std::size_t bytes : {40, 200, 248}) SCENARIO_CHECK(old_bytes(bytes, bytes) == 0);
  for (std::size_t bytes : {249, 1000, 5000, 30000}) {
    SCENARIO_CHECK(old_bytes(bytes, 128) == 0);
    SCENARIO_CHECK(old_bytes(bytes, bytes) > 0);
  }
  // calloc's are zeros all the same.
  for (std::size_t bytes : {249, 1000, 30000, 100000}) {
    char* block = static_cast<char*>(opaque(calloc(bytes, 1)));
    for (std::size_t i = 0; i < bytes; ++i) SCENARIO_CHECK(block[i] == 0);
    free(block);
  }
  return 0;
}
TEST(Writes, NotAllIsZeroedOnRequest) {
  Launch launch;
  launch.scenario = "not_all_zeroed";
  launch.environment = {{"ANNEX_ZERO_FREED", "0"}};
  expect_success(launch);
}

TEST(Writes, AfterFreeWhereNotAllIsZeroed) {
  for (const char* bytes : {"64", "200", "1000", "5000", "30000"}) {
    Launch launch;
    launch.scenario = "written_after_free";
    launch.argument = bytes;
    launch.environment = {{"ANNEX_ZERO_FREED", "0"}};
    const Outcome outcome = run_scenario(launch);
    if (has_tags() && outcome.signal == SIGSEGV) continue;
    EXPECT_EQ(outcome.signal, SIGABRT) << bytes << ": " << describe(outcome);
    EXPECT_EQ(outcome.err.rfind(std::string("annex: ") + kAfter, 0), 0u) << bytes << ": " << describe(outcome);
  }
}
