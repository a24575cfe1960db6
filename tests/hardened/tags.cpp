// Memory tags: what the hardware finds of small blocks. Built for AArch64 alone.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>

#include <cstdint>
#include <set>

#include "hardened/misuse.h"

using namespace annex_test;

namespace {

constexpr std::size_t kBytes = 40;

unsigned tag_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) >> 56 & 15; }
void* with_tag(void* pointer, unsigned tag) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
  return reinterpret_cast<void*>((address & ~(std::uintptr_t{15} << 56)) | std::uintptr_t{tag} << 56);
}

volatile char* bytes_of(void* block) { return static_cast<volatile char*>(opaque(block)); }

}  // namespace

TEST(Tags, BlocksHaveThem) {
  std::set<unsigned> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(tag_of(opaque(malloc(kBytes))));
  EXPECT_EQ(seen.count(0), 0u);
  EXPECT_GE(seen.size(), 10u);
  for (const std::size_t bytes : {1, 100, 5000, 30000}) {
    void* block = opaque(calloc(1, bytes));
    EXPECT_NE(tag_of(block), 0u) << bytes;
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(bytes_of(block)[i], 0);
    void* larger = realloc(block, 2 * bytes);
    std::memset(larger, 1, 2 * bytes);
    EXPECT_GE(malloc_usable_size(larger), 2 * bytes);
    free(larger);
  }
}

ANNEX_SCENARIO(tags_read_behind) {
  void* block = opaque(malloc(kBytes));
  reached();
  return bytes_of(block)[64];
}
ANNEX_SCENARIO(tags_write_before) {
  void* block = opaque(malloc(kBytes));
  void* next = opaque(malloc(kBytes));
  reached();
  bytes_of(block > next ? block : next)[-1] = 1;
  return survived();
}
TEST(Tags, BesideABlock) {
  expect_fault("tags_read_behind");
  expect_fault("tags_write_before");
}

ANNEX_SCENARIO(tags_read_after) {
  void* block = opaque(malloc(kBytes));
  free(block);
  reached();
  return bytes_of(block)[0];
}
ANNEX_SCENARIO(tags_write_after_by_another_thread) {
  void* block = opaque(malloc(kBytes));
  free(block);
  reached();
  const auto write_to = [](void* freed) -> void* {
    bytes_of(freed)[8] = 1;
    return nullptr;
  };
  in_a_thread(write_to, block);
  return survived();
}
TEST(Tags, AfterABlockWasFreed) {
  expect_fault("tags_read_after");
  expect_fault("tags_write_after_by_another_thread");
}

// An address that has a new owner, by another's pointer.
ANNEX_SCENARIO(tags_free_of_anothers) {
  void* block = opaque(malloc(kBytes));
  reached();
  free(with_tag(block, tag_of(block) == 15 ? 1 : tag_of(block) + 1));
  return survived();
}
ANNEX_SCENARIO(tags_realloc_of_anothers) {
  void* block = opaque(malloc(kBytes));
  reached();
  return realloc(with_tag(block, tag_of(block) == 15 ? 1 : tag_of(block) + 1), 100) == nullptr;
}
ANNEX_SCENARIO(tags_free_without) {
  void* block = opaque(malloc(kBytes));
  reached();
  free(with_tag(block, 0));
  return survived();
}
ANNEX_SCENARIO(tags_free_of_a_span_with) {
  void* block = opaque(malloc(1 << 20));
  reached();
  free(with_tag(block, 5));
  return survived();
}
TEST(Tags, FreedByAnotherPointer) {
  for (const char* scenario :
       {"tags_free_of_anothers", "tags_realloc_of_anothers", "tags_free_without", "tags_free_of_a_span_with"})
    expect_found(scenario, kTwice);
}
