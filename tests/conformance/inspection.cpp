// mallinfo, mallinfo2, mallopt, malloc_info and malloc_stats: what glibc offers for looking and
// tuning.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "api.h"
#include "common/expect_success.h"

using namespace annex_test;

namespace {

// glibc counts mapped blocks apart from the others, so only the sum says how much the program
// holds.
std::size_t held(const struct mallinfo2& info) { return info.uordblks + info.hblkhd; }

std::vector<void*> hold(std::size_t bytes, std::size_t total) {
  std::vector<void*> blocks(total / bytes);
  for (void*& block : blocks) {
    block = opaque(malloc(bytes));
    EXPECT_NE(block, nullptr);
  }
  return blocks;
}

}  // namespace

TEST(Inspection, Mallinfo2FollowsWhatTheProgramHolds) {
  for (std::size_t bytes : {std::size_t{100}, 4 * kKiB, 100 * kKiB, 4 * kMiB}) {
    constexpr std::size_t kTotal = 64 * kMiB;
    const std::size_t before = held(mallinfo2());
    const std::vector<void*> blocks = hold(bytes, kTotal);
    const std::size_t during = held(mallinfo2());
    for (void* block : blocks) free(block);
    const std::size_t after = held(mallinfo2());
    EXPECT_GE(during, before + kTotal - kMiB) << bytes;
    EXPECT_LE(during, before + kTotal + kTotal / 4 + 2 * kMiB) << bytes;
    EXPECT_LE(after, before + kTotal / 4) << bytes;
  }
}

TEST(Inspection, Mallinfo2AddsUp) {
  const std::vector<void*> blocks = hold(1000, 4 * kMiB);
  const struct mallinfo2 info = mallinfo2();
  EXPECT_GE(info.arena + info.hblkhd, held(info));
  EXPECT_LE(info.uordblks, info.arena + info.hblkhd);
  for (void* block : blocks) free(block);
}

TEST(Inspection, LargeBlocksAreCountedOneByOne) {
  SKIP_ON_GLIBC("how large a block must be follows what was freed before");
  std::vector<void*> blocks(7);
  std::size_t bytes;
  struct mallinfo2 before, during;
  const auto measure = [&] {
    before = mallinfo2();
    bytes = 0;
    for (void*& block : blocks) {
      block = opaque(malloc(200 * kKiB + bytes / 4));
      ASSERT_NE(block, nullptr);
      bytes += malloc_usable_size(block);
    }
    during = mallinfo2();
  };
  measure();
  // Between the two, offload's support core may have set small blocks aside, at a time of its own.
  for (int i = 0; i < 100 && flavour() == Flavour::kOffload && during.uordblks != before.uordblks; ++i) {
    for (void* block : blocks) free(block);
    measure();
  }
  EXPECT_EQ(during.hblks, before.hblks + blocks.size());
  EXPECT_EQ(during.uordblks, before.uordblks);
  if (flavour() == Flavour::kHardened) {  // what is usable there is what was asked for
    EXPECT_GE(during.hblkhd, before.hblkhd + bytes);
  } else {
    EXPECT_EQ(during.hblkhd, before.hblkhd + bytes);
  }
  blocks[0] = opaque(realloc(blocks[0], 8 * kMiB));
  EXPECT_EQ(mallinfo2().hblks, during.hblks);
  for (void* block : blocks) free(block);
  const struct mallinfo2 after = mallinfo2();
  EXPECT_EQ(after.hblks, before.hblks);
  EXPECT_EQ(after.hblkhd, before.hblkhd);
}

namespace {

// Free blocks of slabs, and dirty free runs that are nobody's: the hardened flavour's guards are runs too, and look so.
struct Free {
  std::size_t pieces;
  std::size_t bytes;
};

int add_free(const annex_region* region, void* context) {
  Free* sum = static_cast<Free*>(context);
  if (region->kind == ANNEX_REGION_SLAB) {
    sum->pieces += region->blocks - region->used;
    sum->bytes += region->bytes - region->used * region->block_size;
  }
  if (region->kind == ANNEX_REGION_FREE && region->dirty) {
    ++sum->pieces;
    sum->bytes += region->bytes;
  }
  return 0;
}

}  // namespace

TEST(Inspection, FreePiecesAreThoseOfAWalk) {
  SKIP_ON_GLIBC("has no walk");
  std::vector<void*> blocks = hold(1000, 4 * kMiB);
  for (std::size_t i = 0; i < blocks.size(); i += 3) {
    free(blocks[i]);
    blocks[i] = nullptr;
  }
  free(opaque(malloc(3 * kMiB)));
  // A support thread may take blocks meanwhile: what was the same before and after was so between.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const struct mallinfo2 info = mallinfo2();
    Free sum = {};
    EXPECT_EQ(annex_heap_walk(add_free, &sum), 0);
    const struct mallinfo2 again = mallinfo2();
    if (info.ordblks != again.ordblks || info.fordblks != again.fordblks) continue;
    EXPECT_GT(info.ordblks, 0u);
    if (flavour() == Flavour::kHardened) {
      EXPECT_LE(info.ordblks, sum.pieces);
    } else {
      EXPECT_EQ(info.ordblks, sum.pieces);
      EXPECT_EQ(info.fordblks, sum.bytes);
    }
    for (void* block : blocks) free(block);
    return;
  }
  FAIL() << "no two mallinfo2() in a row were the same";
}

TEST(Inspection, MallinfoIsMallinfo2InInts) {
  const auto same = [](const struct mallinfo2& a, const struct mallinfo2& b) {
    return a.uordblks == b.uordblks && a.hblkhd == b.hblkhd && a.arena == b.arena && a.ordblks == b.ordblks &&
           a.hblks == b.hblks;
  };
  // A support thread may give memory back meanwhile: what was the same before and after was so between.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const struct mallinfo2 wide = mallinfo2();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
    if (!same(wide, mallinfo2())) continue;
    EXPECT_EQ(narrow.uordblks, static_cast<int>(wide.uordblks));
    EXPECT_EQ(narrow.hblkhd, static_cast<int>(wide.hblkhd));
    EXPECT_EQ(narrow.arena, static_cast<int>(wide.arena));
    EXPECT_EQ(narrow.ordblks, static_cast<int>(wide.ordblks));
    EXPECT_EQ(narrow.hblks, static_cast<int>(wide.hblks));
    return;
  }
  FAIL() << "no two mallinfo2() in a row were the same";
}

TEST(Inspection, MalloptAcceptsWhatProgramsSet) {
  for (int parameter : {M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX, M_CHECK_ACTION}) {
    EXPECT_EQ(mallopt(parameter, 1 << 20), 1) << parameter;
  }
  void* block = opaque(malloc(100));
  EXPECT_NE(block, nullptr);
  free(block);
}

TEST(Inspection, MallocInfoWritesXml) {
  void* large = opaque(malloc(kMiB));
  char* text = nullptr;
  std::size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(malloc_info(0, stream), 0);
  fclose(stream);
  const std::string xml(text, length);
  free(text);
  EXPECT_EQ(xml.compare(0, 8, "<malloc "), 0) << xml;
  const struct mallinfo2 now = mallinfo2();
  char mapped[100];
  snprintf(mapped, sizeof mapped, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>", now.hblks, now.hblkhd);
  EXPECT_NE(xml.find(mapped), std::string::npos) << xml << mapped;
  free(large);
  EXPECT_NE(xml.find("</malloc>"), std::string::npos) << xml;
}

TEST(Inspection, MallocInfoRejectsOptions) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  ASSERT_NE(stream, nullptr);
  EXPECT_NE(malloc_info(1, stream), 0);
  fclose(stream);
  EXPECT_EQ(length, 0u);
  free(text);
}

ANNEX_SCENARIO(malloc_stats) {
  void* block = opaque(malloc(1000));
  malloc_stats();
  free(block);
  return 0;
}

TEST(Inspection, MallocStatsWritesToStderr) {
  const Outcome outcome = expect_success("malloc_stats");
  EXPECT_EQ(outcome.out, "");
  EXPECT_GT(outcome.err.size(), 20u);
}
