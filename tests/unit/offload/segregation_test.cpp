// The metadata that the support core writes is out of a program thread's reach: with all of it unreadable, malloc and
// free go on as long as magazines, stash and ring last (the segregated layout; design.md, "Offload").
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>
#include <vector>

#include "annex/annex.h"
#include "core/arena.h"
#include "front/front.h"
#include "support/books.h"
#include "support/support_core.h"
#include "support/support_thread.h"

namespace annex::support {
namespace {

// Every page of metadata but the class map and the clients: the arena's granules and the bitmaps.
struct Range {
  char* start;
  size_t bytes;
};

std::vector<Range> metadata() {
  const Arena& arena = arenas[0];
  const size_t granules = static_cast<size_t>(arena.frontier() - arena.metadata());
  const size_t page = 4096;
  const auto whole = [&](size_t bytes) { return (bytes + page - 1) & ~(page - 1); };
  const size_t first = static_cast<size_t>(arena.first() - arena.metadata());
  return {{reinterpret_cast<char*>(arena.metadata() + first / 64 * 64), whole((granules - first) * sizeof(Granule))},
          {reinterpret_cast<char*>(books[0].bitmap(first)), whole((granules - first) * kBitmapBytes)}};
}

void protect(const std::vector<Range>& ranges, int protection) {
  for (const Range& range : ranges) ASSERT_EQ(mprotect(range.start, range.bytes, protection), 0);
}

TEST(Segregation, ProgramThreadsTouchNoMetadata) {
  // Warm: magazines and stash of a few classes in use, the support thread running if it can.
  std::vector<void*> blocks(4000);
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = annex_malloc(16 + i % 40 * 16);
    for (void* block : blocks) annex_free(block);
  }
  std::vector<void*> mine(64);
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = annex_malloc(64);
  // Nobody else looks at metadata below: both locks are ours.
  Client* client = static_cast<Client*>(reinterpret_cast<Magazines*>(front::thread_magazines));
  client->heap.lock.lock();
  const std::vector<Range> ranges = metadata();
  arena_lock.lock();
  protect(ranges, PROT_NONE);
  int from_stash = 0;
  for (int round = 0; round < 1000; ++round) {
    for (size_t i = 0; i < 24; ++i) {
      annex_free(mine[i]);
      EXPECT_EQ(annex_usable_size(mine[i + 24]), 64u);
    }
    for (size_t i = 0; i < 24; ++i) {
      if (client->magazines[class_of(64)].count() == 0) ++from_stash;
      mine[i] = annex_malloc(64);
    }
  }
  EXPECT_EQ(from_stash, 0);
  protect(ranges, PROT_READ | PROT_WRITE);
  arena_lock.unlock();
  client->heap.lock.unlock();
  for (void* block : mine) annex_free(block);
}

// The stash and the ring, where there is a support thread.
TEST(Segregation, NorWhenTheyTradeWithTheSupportCore) {
  std::vector<void*> blocks(200000);
  for (int attempt = 0; attempt < 200 && !awake(); ++attempt) {
    for (void*& block : blocks) block = annex_malloc(96);
    for (void* block : blocks) annex_free(block);
  }
  if (!awake()) GTEST_SKIP() << "no CPU to spare for a support thread";
  Client* client = static_cast<Client*>(reinterpret_cast<Magazines*>(front::thread_magazines));
  const SizeClass c = class_of(96);
  std::vector<void*> mine;
  mine.reserve(1000);
  uint32_t stashed = 0;
  for (int attempt = 0; attempt < 1000 && stashed == 0; ++attempt) {
    client->bypass = 0;  // that the ring was full above is of no interest here
    for (int i = 0; i < 500; ++i) mine.push_back(annex_malloc(96));
    for (int i = 0; i < 10000 && client->stash.level(c) == 0; ++i) std::this_thread::yield();
    client->heap.lock.lock();
    // With something to do for it, an awake support thread ends up waiting for the lock, and stays awake.
    client->stir();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stashed = client->stash.level(c);
    if (stashed > 0 && awake()) break;
    stashed = 0;
    client->heap.lock.unlock();
    for (void* block : mine) annex_free(block);
    mine.clear();
  }
  ASSERT_GT(stashed, 0u);
  const std::vector<Range> ranges = metadata();
  arena_lock.lock();
  protect(ranges, PROT_NONE);
  uint32_t ready = 0;
  std::vector<void*>& taken = blocks;  // room enough: nothing is allocated here
  while (client->stash.level(c) > 0) taken[ready++] = annex_malloc(96);
  for (uint32_t i = 0; i < ready; ++i) annex_free(taken[i]);
  protect(ranges, PROT_READ | PROT_WRITE);
  arena_lock.unlock();
  EXPECT_GE(ready, stashed);
  client->heap.lock.unlock();
  for (void* block : mine) annex_free(block);
}

}  // namespace
}  // namespace annex::support
