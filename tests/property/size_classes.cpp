// What must hold for the usable sizes as a whole, seen from outside.
#include <gtest/gtest.h>

#include <cstdint>

#include "annex/annex.h"
#include "common/opaque.h"
#include "common/pattern.h"

using namespace annex_test;

namespace {

std::size_t usable(std::size_t bytes) {
  void* block = opaque(annex_malloc(bytes));
  const std::size_t result = annex_usable_size(block);
  annex_free(block);
  return result;
}

constexpr std::size_t kLimit = 80 * 1024;

}  // namespace

TEST(SizeClasses, UsableSizeNeverFallsWhenMoreIsAskedFor) {
  std::size_t previous = usable(0);
  for (std::size_t bytes = 1; bytes <= kLimit; ++bytes) {
    const std::size_t now = usable(bytes);
    ASSERT_GE(now, bytes);
    ASSERT_GE(now, previous) << bytes;
    previous = now;
  }
}

TEST(SizeClasses, AskingForTheUsableSizeGivesNoMore) {
  for (std::size_t bytes = 1; bytes <= kLimit; ++bytes) {
    const std::size_t now = usable(bytes);
    ASSERT_EQ(usable(now), now) << bytes;
  }
}

TEST(SizeClasses, AtMostAnEighthIsWasted) {
  for (std::size_t bytes = 129; bytes <= kLimit; ++bytes) {
    const std::size_t now = usable(bytes);
    ASSERT_LE((now - bytes) * 8, now) << bytes << " takes " << now;
  }
}

TEST(SizeClasses, EveryWayOfAskingGivesTheSameSize) {
  for (std::size_t bytes = 1; bytes <= kLimit; bytes += bytes / 64 + 1) {
    const std::size_t expected = usable(bytes);
    void* zeroed = opaque(annex_calloc(1, bytes));
    void* grown = opaque(annex_realloc(nullptr, bytes));
    EXPECT_EQ(annex_usable_size(zeroed), expected) << bytes;
    EXPECT_EQ(annex_usable_size(grown), expected) << bytes;
    annex_free(zeroed);
    annex_free(grown);
  }
}

TEST(SizeClasses, ReallocToWhatFitsStaysInPlace) {
  for (std::size_t bytes = 1; bytes <= kLimit; bytes += bytes / 16 + 1) {
    void* block = opaque(annex_malloc(bytes));
    const auto before = reinterpret_cast<std::uintptr_t>(block);
    block = opaque(annex_realloc(block, annex_usable_size(block)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block), before) << bytes;
    annex_free(block);
  }
}
