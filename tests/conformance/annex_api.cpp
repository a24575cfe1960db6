// annex.h: statistics, purge, heap walk and ownership, as their comments promise.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "api.h"
#include "common/expect_success.h"
#include "common/resident.h"

using namespace annex_test;

namespace {

annex_stats_t stats() {
  annex_stats_t out;
  std::memset(&out, 0xFF, sizeof out);
  EXPECT_EQ(annex_stats(&out), 0);
  return out;
}

std::vector<void*> hold(std::size_t bytes, std::size_t total) {
  std::vector<void*> blocks(total / bytes);
  for (void*& block : blocks) {
    block = opaque(malloc(bytes));
    EXPECT_NE(block, nullptr);
    std::memset(block, 1, bytes);
  }
  return blocks;
}

struct Walk {
  const void* previous_end = nullptr;
  const void* wanted = nullptr;
  int found = 0;
  bool ordered = true;
  bool sane = true;
  int visited = 0;
  int stop_after = 0;
  annex_region region{};
};

int visit(const annex_region* region, void* context) {
  Walk& walk = *static_cast<Walk*>(context);
  const char* start = static_cast<const char*>(region->start);
  ++walk.visited;
  if (walk.previous_end != nullptr && start < walk.previous_end) walk.ordered = false;
  walk.previous_end = start + region->bytes;
  switch (region->kind) {
    case ANNEX_REGION_SLAB:
      walk.sane = walk.sane && region->block_size > 0 && region->blocks > 0 && region->used <= region->blocks &&
                  region->blocks * region->block_size <= region->bytes;
      break;
    case ANNEX_REGION_SPAN:
      walk.sane = walk.sane && region->blocks == 1 && region->used == 1 && region->block_size > 0;
      break;
    case ANNEX_REGION_FREE:
      walk.sane = walk.sane && region->block_size == 0 && region->used == 0;
      break;
    default:
      walk.sane = false;
  }
  if (walk.wanted >= start && walk.wanted < walk.previous_end) {
    ++walk.found;
    walk.region = *region;
  }
  return walk.stop_after != 0 && walk.visited == walk.stop_after ? 77 : 0;
}

}  // namespace

class AnnexApi : public testing::Test {
 protected:
  void SetUp() override { SKIP_ON_GLIBC("is not Annex"); }
};

TEST_F(AnnexApi, StatsWantsSomewhereToWrite) {
  errno = 0;
  EXPECT_EQ(annex_stats(static_cast<annex_stats_t*>(opaque(nullptr))), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(AnnexApi, StatsAddUp) {
  const std::vector<void*> small = hold(100, 8 * kMiB);
  const std::vector<void*> large = hold(2 * kMiB, 16 * kMiB);
  const annex_stats_t now = stats();
  EXPECT_LE(now.committed, now.reserved);
  EXPECT_LE(now.metadata, now.committed);
  EXPECT_GT(now.metadata, 0u);
  EXPECT_GE(now.used, 24 * kMiB - kMiB);
  EXPECT_GE(now.used_spans, 16 * kMiB);
  EXPECT_LE(now.used_spans, now.used);
  EXPECT_GE(now.slabs, 8 * kMiB);
  EXPECT_LE(now.used, now.slabs + now.used_spans);
  EXPECT_GE(now.peak_in_use, now.slabs + now.used_spans);
  EXPECT_LE(now.slabs + now.used_spans, now.committed);
  EXPECT_GE(now.heaps, 1u);
  EXPECT_GE(now.arenas, 1u);
  EXPECT_GT(now.slab_refills, 0u);
  for (void* block : small) free(block);
  for (void* block : large) free(block);
  const annex_stats_t after = stats();
  EXPECT_LE(after.used_spans, now.used_spans - 16 * kMiB);
  EXPECT_LE(after.used, now.used - 16 * kMiB);
  EXPECT_GE(after.peak_in_use, now.slabs + now.used_spans);
}

namespace {

// What the kernel counts as the process's own writable memory, touched or not; stacks and what was mapped too.
std::uint64_t data_bytes() { return statm_bytes(5); }

constexpr std::size_t kSleepers = 200;
pthread_barrier_t all_there, all_seen;

void* sleep_with_a_block(void*) {
  void* const block = opaque(malloc(100));
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_seen);
  free(block);
  return nullptr;
}

}  // namespace

ANNEX_SCENARIO(committed_by_threads) {
  constexpr std::size_t kStack = 64 * kKiB;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_barrier_init(&all_there, nullptr, kSleepers + 1);
  pthread_barrier_init(&all_seen, nullptr, kSleepers + 1);
  const std::uint64_t committed_before = stats().committed;
  const std::uint64_t data_before = data_bytes();
  pthread_t threads[kSleepers];
  for (pthread_t& thread : threads) {
    SCENARIO_CHECK(pthread_create(&thread, &attributes, sleep_with_a_block, nullptr) == 0);
  }
  pthread_barrier_wait(&all_there);
  const std::uint64_t committed = (stats().committed - committed_before) / kSleepers;
  const std::uint64_t data = (data_bytes() - data_before) / kSleepers;
  pthread_barrier_wait(&all_seen);
  for (pthread_t& thread : threads) pthread_join(thread, nullptr);
  std::fprintf(stderr, "of each thread: %zu bytes committed, %zu of VmData\n", static_cast<std::size_t>(committed),
               static_cast<std::size_t>(data));
  SCENARIO_CHECK(committed <= 256 * kKiB);
  SCENARIO_CHECK(data <= committed + kStack + 16 * kKiB);  // a guard, and what libc has for each
  return 0;
}

TEST_F(AnnexApi, ThreadsCommitLittleAndAllOfItCounts) { expect_success("committed_by_threads"); }

namespace {

// Of the addresses for which the kernel has noted that huge pages are wanted, whole granules of 64 KiB.
std::uint64_t huge_bytes_of_the_kernel() {
  static char line[256];  // fgets and setvbuf: without allocating
  static char buffer[4096];
  std::FILE* const maps = std::fopen("/proc/self/smaps", "r");
  if (maps == nullptr) return 0;
  std::setvbuf(maps, buffer, _IOFBF, sizeof buffer);
  std::uint64_t total = 0;
  unsigned long from = 0, to = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long a = 0, b = 0;
    if (std::sscanf(line, "%lx-%lx ", &a, &b) == 2) from = a, to = b;
    if (std::strncmp(line, "VmFlags:", 8) == 0 && std::strstr(line, " hg") != nullptr) {
      total += to / (64 * kKiB) * (64 * kKiB) - from;
    }
  }
  std::fclose(maps);
  return total;
}

// What the library says, which a support thread may change while the kernel is asked.
bool as_the_kernel_says() {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::uint64_t before = stats().huge_page_bytes;
    const std::uint64_t kernel = huge_bytes_of_the_kernel();
    const annex_stats_t after = stats();
    if (before != after.huge_page_bytes) continue;
    if (after.huge_page_bytes > after.committed) return false;
    if (after.huge_page_bytes == kernel) return true;
    // Freed spans that are unreadable meanwhile lose the advice unseen.
    if (flavour() == Flavour::kHardened) return after.huge_page_bytes >= kernel;
    std::fprintf(stderr, "%zu KiB, the kernel says %zu\n", static_cast<std::size_t>(before / kKiB),
                 static_cast<std::size_t>(kernel / kKiB));
    return false;
  }
  return false;
}

}  // namespace

ANNEX_SCENARIO(huge_page_bytes) {
  const std::uint64_t before = stats().huge_page_bytes;
  for (int round = 0; round < 20; ++round) {
    char* block = static_cast<char*>(opaque(malloc(64 * kMiB)));
    SCENARIO_CHECK(block != nullptr);
    *block = 1;
    SCENARIO_CHECK(stats().huge_page_bytes >= 62 * kMiB);
    SCENARIO_CHECK(as_the_kernel_says());
    void* const beside = opaque(malloc(3 * kMiB + round * 70 * kKiB));
    block = static_cast<char*>(opaque(realloc(block, 100 * kMiB)));  // perhaps moved
    SCENARIO_CHECK(block != nullptr && *block == 1);
    SCENARIO_CHECK(as_the_kernel_says());
    free(block);
    SCENARIO_CHECK(as_the_kernel_says());
    if (round % 2 == 0) annex_purge();
    SCENARIO_CHECK(as_the_kernel_says());
    free(beside);
  }
  annex_purge();
  SCENARIO_CHECK(as_the_kernel_says());
  SCENARIO_CHECK(stats().huge_page_bytes <= before + 6 * kMiB);
  return 0;
}

TEST_F(AnnexApi, HugePageBytesAreWhatTheyAreNow) {
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) GTEST_SKIP() << "no huge pages here";
  Launch launch;
  launch.scenario = "huge_page_bytes";
  launch.environment = {{"ANNEX_HUGE_PAGES", "always"}};
  expect_success(launch);
}

TEST_F(AnnexApi, JsonCarriesTheStats) {
  const std::size_t length = annex_stats_json(nullptr, 0);
  ASSERT_GT(length, 10u);
  std::vector<char> text(length + 64, '#');
  const std::size_t written = annex_stats_json(text.data(), text.size());
  ASSERT_LT(written, text.size());
  EXPECT_EQ(std::strlen(text.data()), written);
  const std::string json(text.data(), written);
  EXPECT_EQ(json.front(), '{');
  EXPECT_NE(json.find('}'), std::string::npos);
  for (const char* name :
       {"reserved", "committed", "metadata", "used", "used_spans", "slabs", "dirty", "peak_in_use", "purged_total",
        "huge_page_bytes", "heaps", "arenas", "slab_refills", "remote_batches", "support_cpu_us"}) {
    EXPECT_NE(json.find("\"" + std::string(name) + "\":"), std::string::npos) << name << " in " << json;
  }
}

TEST_F(AnnexApi, JsonIsCutLikeSnprintf) {
  char text[12];
  std::memset(text, '#', sizeof text);
  EXPECT_GT(annex_stats_json(text, 8), 8u);
  EXPECT_EQ(text[7], 0);
  EXPECT_EQ(text[8], '#');
}

TEST_F(AnnexApi, PurgeGivesFreeMemoryBack) {
  annex_purge();
  const std::size_t before = resident_bytes();
  for (std::size_t bytes : {std::size_t{200}, 10 * kKiB, 4 * kMiB}) {
    const std::vector<void*> blocks = hold(bytes, 64 * kMiB);
    for (void* block : blocks) free(block);
    const std::uint64_t purged = stats().purged_total;
    const std::size_t given = annex_purge();
    EXPECT_LE(resident_bytes(), before + 8 * kMiB) << bytes;
    EXPECT_GE(stats().purged_total, purged + given);
    EXPECT_LE(stats().dirty, 4 * kMiB) << bytes;
  }
}

TEST_F(AnnexApi, PurgeLeavesBlocksAlone) {
  std::vector<void*> blocks = hold(500, 4 * kMiB);
  for (std::size_t i = 0; i < blocks.size(); ++i) fill(blocks[i], 500, i);
  for (std::size_t i = 0; i < blocks.size(); i += 3) free(blocks[i]);
  annex_purge();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 3 == 0) continue;
    ASSERT_EQ(mismatch(blocks[i], 500, i), kNoMismatch) << i;
    free(blocks[i]);
  }
}

// What no address space has room for is refused before what is kept free is given back for it.
TEST_F(AnnexApi, ImpossibleRequestsCostNothing) {
  for (void* block : hold(3 * kMiB, 12 * kMiB)) free(block);
  const annex_stats_t before = stats();
  ASSERT_GT(before.dirty, 0u);
  for (std::size_t bytes : {(std::size_t{1} << 47) + 1, std::size_t{1} << 50, kMaxObject}) {
    EXPECT_EQ(opaque(malloc(bytes)), nullptr) << bytes;
    EXPECT_EQ(opaque(calloc(bytes / 8 + 1, 8)), nullptr) << bytes;
    EXPECT_EQ(opaque(memalign(4096, bytes)), nullptr) << bytes;
  }
  EXPECT_EQ(stats().dirty, before.dirty);
  EXPECT_EQ(stats().purged_total, before.purged_total);
}

TEST_F(AnnexApi, WalkFindsEveryBlockOnceAndInOrder) {
  for (std::size_t bytes : {std::size_t{16}, std::size_t{100}, 3 * kKiB, 20 * kKiB, 300 * kKiB, 5 * kMiB}) {
    void* block = opaque(malloc(bytes));
    ASSERT_NE(block, nullptr);
    Walk walk;
    walk.wanted = block;
    EXPECT_EQ(annex_heap_walk(visit, &walk), 0);
    EXPECT_TRUE(walk.ordered);
    EXPECT_TRUE(walk.sane);
    EXPECT_EQ(walk.found, 1) << bytes;
    EXPECT_NE(walk.region.kind, ANNEX_REGION_FREE) << bytes;
    EXPECT_GE(walk.region.block_size, bytes);
    EXPECT_GE(walk.region.used, 1u);
    free(block);
  }
}

TEST_F(AnnexApi, WalkStopsWhenToldTo) {
  void* small = opaque(malloc(10));
  void* large = opaque(malloc(5 * kMiB));
  Walk walk;
  walk.stop_after = 1;
  EXPECT_EQ(annex_heap_walk(visit, &walk), 77);
  EXPECT_EQ(walk.visited, 1);
  free(small);
  free(large);
}

TEST_F(AnnexApi, OwnsItsBlocksAndNothingElse) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{1000}, 50 * kKiB, 5 * kMiB, 300 * kMiB}) {
    auto* block = static_cast<char*>(opaque(malloc(bytes)));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(annex_owns(block), 1) << bytes;
    EXPECT_EQ(annex_owns(block + bytes / 2), 1) << bytes;
    EXPECT_EQ(annex_owns(block + bytes - 1), 1) << bytes;
    free(block);
  }
  static int in_static_storage;
  int on_the_stack = 0;
  void* foreign = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(annex_owns(&in_static_storage), 0);
  EXPECT_EQ(annex_owns(&on_the_stack), 0);
  EXPECT_EQ(annex_owns(foreign), 0);
  EXPECT_EQ(annex_owns(nullptr), 0);
  EXPECT_EQ(annex_owns(reinterpret_cast<void*>(~std::uintptr_t{0})), 0);
  munmap(foreign, 4096);
}

TEST_F(AnnexApi, NamedFamilyIsTheSameHeap) {
  void* block = opaque(annex_malloc(100));
  ASSERT_NE(block, nullptr);
  fill(block, 100, 1);
  block = opaque(realloc(block, 1000));
  EXPECT_EQ(mismatch(block, 100, 1), kNoMismatch);
  EXPECT_GE(annex_usable_size(block), 1000u);
  annex_free(block);
  block = opaque(malloc(100));
  block = opaque(annex_realloc(block, 10));
  free(block);
  block = opaque(annex_calloc(10, 10));
  EXPECT_EQ(first_nonzero(block, 100), kNoMismatch);
  free(block);
  block = opaque(annex_aligned_alloc(1024, 100));
  EXPECT_TRUE(is_aligned(block, 1024));
  free(block);
  annex_free(opaque(nullptr));
  EXPECT_EQ(annex_usable_size(opaque(nullptr)), 0u);
}

TEST_F(AnnexApi, NamedFamilyFailsAlike) {
  const std::size_t half = std::size_t{1} << 32;
  EXPECT_NO_MEMORY(annex_malloc(opaque(kMaxObject + 1)));
  EXPECT_NO_MEMORY(annex_malloc(opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(annex_calloc(opaque(half), opaque(half)));
  EXPECT_NO_MEMORY(annex_realloc(opaque(nullptr), opaque(SIZE_MAX)));
  EXPECT_NO_MEMORY(annex_aligned_alloc(64, opaque(SIZE_MAX)));
  EXPECT_INVALID(annex_aligned_alloc(opaque(std::size_t{3}), 100));
  EXPECT_INVALID(annex_aligned_alloc(opaque(std::size_t{0}), 100));
}

TEST_F(AnnexApi, VersionNamesTheRelease) {
  const std::string version = annex_version();
  const std::string release = std::to_string(ANNEX_VERSION_MAJOR) + "." + std::to_string(ANNEX_VERSION_MINOR) + "." +
                              std::to_string(ANNEX_VERSION_PATCH);
  EXPECT_EQ(version, release + version_suffix());
  EXPECT_EQ(annex_version(), annex_version());
}
