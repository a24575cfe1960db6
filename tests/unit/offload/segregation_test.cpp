// The metadata that the support core writes is out of a program thread's reach: with all of it unreadable, malloc and
// free go on as long as magazines, stash and ring last (the segregated layout; design.md, "Offload").
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "annex/annex.h"
#include "front/front.h"
#include "os/options.h"
#include "pages/arena.h"
#include "support/side_tables.h"
#include "support/support_core.h"

namespace annex::support {
namespace {

// Every page of metadata but the class map and the clients: the arena's granules and the bitmaps.
struct Range {
  char* start;
  size_t bytes;
};

std::vector<Range> metadata() {
  const Arena& arena = arenas[0];
  const size_t granules = static_cast<size_t>(arena.frontier() - arena.first());
  const size_t page = 4096;
  const auto whole = [&](size_t bytes) { return (bytes + page - 1) & ~(page - 1); };
  return {{reinterpret_cast<char*>(arena.first()), whole(granules * sizeof(Granule))},
          {reinterpret_cast<char*>(side_tables[0].bitmap(0)), whole(granules * kBitmapBytes)}};
}

Client* own_client() { return static_cast<Client*>(front::thread_magazines); }

void protect(const std::vector<Range>& ranges, int protection) {
  for (const Range& range : ranges) ASSERT_EQ(mprotect(range.start, range.bytes, protection), 0);
}

TEST(Segregation, ProgramThreadsTouchNoMetadata) {
  os::options.background = os::Background::kNone;
  // Warm: magazines of many classes in use.
  std::vector<void*> blocks(4000);
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = annex_malloc(16 + i % 40 * 16);
    for (void* block : blocks) annex_free(block);
  }
  std::vector<void*> mine(64);
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = annex_malloc(64);
  // Nobody else looks at metadata below: both locks are ours.
  Client* client = own_client();
  const std::vector<Range> ranges = metadata();
  client->heap.lock.lock();
  page_heap_lock.lock();
  protect(ranges, PROT_NONE);
  int from_stash = 0;
  for (int round = 0; round < 1000; ++round) {
    for (size_t i = 0; i < 24; ++i) {
      annex_free(mine[i]);
      EXPECT_EQ(annex_usable_size(mine[i + 24]), 64u);
    }
    for (size_t i = 0; i < 24; ++i) {
      if ((*client)[class_of(64)].count() == 0) ++from_stash;
      mine[i] = annex_malloc(64);
    }
  }
  EXPECT_EQ(from_stash, 0);
  protect(ranges, PROT_READ | PROT_WRITE);
  page_heap_lock.unlock();
  client->heap.lock.unlock();
  for (void* block : mine) annex_free(block);
}

// Stash and ring, with the test in the support thread's place.
TEST(Segregation, NorWhenTheyTradeWithTheSupportCore) {
  os::options.background = os::Background::kNone;
  const SizeClass c = class_of(96);
  std::vector<void*> mine(60000);  // more than any magazine holds
  for (void*& block : mine) block = annex_malloc(96);
  Client* client = own_client();
  while (wants(client)) serve(client);
  const uint32_t stashed = client->stash.held(c);
  ASSERT_GT(stashed, 0u);
  for (void* block : mine) annex_free(block);
  std::vector<void*> taken(2 * widest_limit(c) + 3 * stash_limit(c));
  uint32_t count = 0;
  const std::vector<Range> ranges = metadata();
  client->heap.lock.lock();
  page_heap_lock.lock();
  protect(ranges, PROT_NONE);
  while (client->stash.held(c) > 0 || client->rest[c].mask != 0 || (*client)[c].count() > worthwhile(c))
    taken[count++] = annex_malloc(96);
  const uint32_t room = std::min((*client)[c].room(), count);
  for (uint32_t i = 0; i < room; ++i) annex_free(taken[--count]);
  const uint32_t sent = client->freed.push(taken.data(), std::min(count, kFreedSlots));
  client->note_activity();
  protect(ranges, PROT_READ | PROT_WRITE);
  page_heap_lock.unlock();
  client->heap.lock.unlock();
  EXPECT_EQ(sent, std::min(count, kFreedSlots));
  EXPECT_GE(count + room, stashed);
  while (wants(client)) serve(client);
  EXPECT_TRUE(client->freed.empty());
}

}  // namespace
}  // namespace annex::support
