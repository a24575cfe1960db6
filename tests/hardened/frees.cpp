// Wrong frees that only apart from the block can be told from right ones, and sizes and alignments that are not the
// block's.
#include <gtest/gtest.h>
#include <malloc.h>

#include <new>

#include "common/expect_success.h"
#include "hardened/misuse.h"

using namespace annex_test;

// --- freed twice, whatever was written to the block and freed in between ---------------------------------------------

ANNEX_SCENARIO(freed_again_overwritten) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  std::memset(block, 1, argument_bytes());
  free(block);
  std::memset(block, 1, argument_bytes());  // as no free block looks
  reached();
  free(opaque(block));
  return survived();
}
TEST(Frees, TwiceAfterTheBlockWasOverwritten) {
  SKIP_WITH_TAGS();
  expect_found_for({1, 16, 64, 200, 1000, 5000, 30000}, "freed_again_overwritten", kTwice);
  expect_found_for({60000, 100000}, "freed_again_overwritten", "a pointer to no allocated block (freed twice?):");
}

ANNEX_SCENARIO(freed_again_later) {
  void* block = opaque(malloc(argument_bytes()));
  free(block);
  for (int i = 0; i < 100; ++i) free(opaque(malloc(argument_bytes())));
  reached();
  free(opaque(block));
  return survived();
}
TEST(Frees, TwiceWithOthersBetween) { expect_found_for({16, 64, 200, 1000, 5000}, "freed_again_later", kTwice); }

ANNEX_SCENARIO(freed_again_by_another_thread) {
  void* block = opaque(malloc(argument_bytes()));
  free(block);
  reached();
  free_in_a_thread(block);
  return survived();
}
TEST(Frees, TwiceByAnotherThread) {
  expect_found_for({16, 64, 200, 1000, 5000}, "freed_again_by_another_thread", kTwice);
  expect_found_for({100000, 3000000}, "freed_again_by_another_thread",
                   "a pointer to no allocated block (freed twice?):");
}

// Two threads free the block at the same moment: at the latest, it is found before it would have two owners.
ANNEX_SCENARIO(freed_by_two_at_once) {
  reached();
  for (int round = 0; round < 100000; ++round) {
    void* block = opaque(malloc(64));
    pthread_t thread;
    SCENARIO_CHECK(pthread_create(
                       &thread, nullptr,
                       [](void* freed) -> void* {
                         free(freed);
                         return nullptr;
                       },
                       block) == 0);
    free(block);
    pthread_join(thread, nullptr);
  }
  return survived();
}
TEST(Frees, TwiceAtTheSameMoment) { expect_found("freed_by_two_at_once", kTwice); }

// --- never handed out ------------------------------------------------------------------------------------------------

// Behind each block lies another one, or nothing. The sizes are ones that nobody else in the process has.
ANNEX_SCENARIO(freed_what_was_never_handed_out) {
  const std::size_t bytes = argument_bytes();
  char* blocks[64];
  for (char*& block : blocks) block = static_cast<char*>(opaque(malloc(bytes)));
  const std::size_t step = malloc_usable_size(blocks[0]) + 8;  // as far as the next block
  for (char* block : blocks) {
    char* next = block + step;
    bool known = false;
    for (char* other : blocks) known |= other == next;
    if (known) continue;
    reached();
    free(opaque(next));
    return survived();
  }
  return survived();
}
TEST(Frees, WhatWasNeverHandedOut) { expect_found_for({3576, 7160, 14328}, "freed_what_was_never_handed_out", "a "); }

// Where the block's state is looked up for a larger block, these addresses have the same one (harden/live_blocks.h).
ANNEX_SCENARIO(freed_just_behind_its_start) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  reached();
  free(opaque(block + 16));
  return survived();
}
ANNEX_SCENARIO(freed_further_behind_its_start) {
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  reached();
  free(opaque(block + 240));
  return survived();
}
TEST(Frees, BehindTheStart) {
  SKIP_WITH_TAGS();
  const char* const kInside = "a pointer into a block (or misaligned):";
  expect_found_for({64, 200, 300, 1000, 5000, 30000}, "freed_just_behind_its_start", kInside);
  expect_found_for({300, 1000, 5000, 30000}, "freed_further_behind_its_start", kInside);
}

// --- another size, another alignment ---------------------------------------------------------------------------------

ANNEX_SCENARIO(deleted_with_another_size) {
  void* block = opaque(::operator new(argument_bytes()));
  reached();
  ::operator delete(opaque(block), argument_bytes() - 1);
  return survived();
}
TEST(Frees, WithAnotherSize) {
  expect_found_for({16, 40, 64, 200, 1000, 40000, 3000000}, "deleted_with_another_size",
                   "a block deleted as one of another size:");
}

ANNEX_SCENARIO(deleted_with_its_size) {
  for (std::size_t bytes = 1; bytes < 100000; bytes += 1 + bytes / 50) {
    ::operator delete(opaque(::operator new(bytes)), bytes);
    ::operator delete[](opaque(::operator new[](bytes)), bytes);
    for (std::size_t alignment = 32; alignment <= 8192; alignment *= 4) {
      const auto aligned = std::align_val_t{alignment};
      ::operator delete(opaque(::operator new(bytes, aligned)), bytes, aligned);
    }
  }
  return 0;
}
TEST(Frees, WithItsSize) { expect_success("deleted_with_its_size"); }

ANNEX_SCENARIO(deleted_with_another_alignment) {
  char* blocks[32];
  for (char*& block : blocks) block = static_cast<char*>(opaque(::operator new(100)));
  reached();
  for (char* block : blocks) {
    if (reinterpret_cast<std::uintptr_t>(block) % 256 != 0) ::operator delete (opaque(block), std::align_val_t{256});
  }
  return survived();
}
TEST(Frees, WithAnotherAlignment) {
  expect_found("deleted_with_another_alignment", "a block deleted as one of another alignment:");
}

// --- what is no block ------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(usable_size_of_a_freed_block) {
  void* block = opaque(malloc(argument_bytes()));
  free(block);
  reached();
  opaque(malloc_usable_size(opaque(block)));
  return survived();
}
TEST(Frees, TheUsableSizeOfAFreedBlock) {
  expect_found_for({0, 16, 200, 5000, 100000, 3000000}, "usable_size_of_a_freed_block", "a ");
}

ANNEX_SCENARIO(an_empty_block_freed_twice) {
  void* block = opaque(malloc(0));
  free(block);
  reached();
  free(opaque(block));
  return survived();
}
TEST(Frees, AnEmptyBlockTwice) { expect_found("an_empty_block_freed_twice", kTwice); }
