// The C library's other names for the family, and the memory that its functions hand out.
#include <gtest/gtest.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "api.h"

using namespace annex_test;

extern "C" {
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* block);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

// 1 where Annex owns the block, and on glibc, where nobody asks.
int owned(const void* block) { return on_glibc() ? 1 : annex_owns(block); }

}  // namespace

TEST(LibcCallers, AliasesAreTheSameHeap) {
  void* block = opaque(__libc_malloc(100));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(owned(block));
  EXPECT_TRUE(is_aligned(block, kFundamental));
  fill(block, 100, 1);
  block = opaque(realloc(block, 5000));
  EXPECT_EQ(mismatch(block, 100, 1), kNoMismatch);
  __libc_free(block);
  __libc_free(opaque(nullptr));

  block = opaque(malloc(100));
  fill(block, 100, 2);
  block = opaque(__libc_realloc(block, 100 * kKiB));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(owned(block));
  EXPECT_EQ(mismatch(block, 100, 2), kNoMismatch);
  free(block);

  block = opaque(__libc_calloc(100, 10));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(owned(block));
  EXPECT_EQ(first_nonzero(block, 1000), kNoMismatch);
  free(block);

  block = opaque(__libc_memalign(4096, 10));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(owned(block));
  EXPECT_TRUE(is_aligned(block, 4096));
  __libc_free(block);
}

TEST(LibcCallers, AliasesFailAlike) {
  const std::size_t half = std::size_t{1} << 32;
  EXPECT_NO_MEMORY(__libc_malloc(opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(__libc_calloc(opaque(half), opaque(half)));
  EXPECT_NO_MEMORY(__libc_realloc(opaque(nullptr), opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(__libc_memalign(64, opaque(SIZE_MAX)));
}

TEST(LibcCallers, StringsFromTheLibraryAreOurs) {
  char* copy = strdup("a string that the C library copies");
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(owned(copy));
  free(copy);
  char* bounded = strndup("another one", 4);
  ASSERT_NE(bounded, nullptr);
  EXPECT_TRUE(owned(bounded));
  EXPECT_STREQ(bounded, "anot");
  free(bounded);
  wchar_t* wide = wcsdup(L"wide");
  ASSERT_NE(wide, nullptr);
  EXPECT_TRUE(owned(wide));
  free(wide);
  char* printed = nullptr;
  ASSERT_GT(asprintf(&printed, "%s %d", "printed", 42), 0);
  EXPECT_TRUE(owned(printed));
  EXPECT_STREQ(printed, "printed 42");
  free(printed);
}

TEST(LibcCallers, StreamsGrowOurBlocks) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  ASSERT_NE(stream, nullptr);
  for (int i = 0; i < 20000; ++i) fprintf(stream, "%d,", i);
  ASSERT_EQ(fclose(stream), 0);
  EXPECT_TRUE(owned(text));
  EXPECT_EQ(strncmp(text, "0,1,2,3,", 8), 0);
  stream = fmemopen(text, length, "r");
  ASSERT_NE(stream, nullptr);
  char* line = nullptr;
  std::size_t capacity = 0;
  EXPECT_EQ(getline(&line, &capacity, stream), static_cast<ssize_t>(length));
  EXPECT_TRUE(owned(line));
  fclose(stream);
  free(line);
  free(text);
}
