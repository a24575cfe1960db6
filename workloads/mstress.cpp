// Waves of threads that build small structures, keep some of them, and pass others on through a shared table.
// Stands for: mstress (Leijen, with the mimalloc paper, APLAS 2019), used by SpeedMalloc: a server whose objects have
// mixed lifetimes and migrate between threads, and whose threads come and go.
//
// What lives at the end of a wave grows with the items of the wave, so these are a size, and waves the steps.

#include <atomic>

#include "block.h"

using workload::Random;

namespace {

// An array of words, most of them small, a few large; each word is checked when it is freed.
struct Item {
  uint64_t words;
  uint64_t key;
  uint64_t* body() { return reinterpret_cast<uint64_t*>(this + 1); }
};

constexpr uint32_t kTable = 1024;
std::atomic<Item*> g_table[kTable];

Item* new_item(Random& random) {
  uint64_t words = 1 + random.below(16);
  const uint32_t kind = random.below(100);
  if (kind >= 99) {
    words = 1 + random.below(8192);
  } else if (kind >= 85) {
    words = 1 + random.below(256);
  }
  auto* item = static_cast<Item*>(calloc(1, sizeof(Item) + words * 8));
  workload::require(item != nullptr && item->body()[words - 1] == 0, "calloc gave memory that was not zero");
  item->words = words;
  item->key = random.next();
  for (uint64_t i = 0; i < words; ++i) item->body()[i] = item->key ^ i;
  return item;
}

void free_item(Item* item) {
  if (item == nullptr) return;
  for (uint64_t i = 0; i < item->words; ++i)
    workload::require(item->body()[i] == (item->key ^ i), "an item's content changed");
  free(item);
}

// The work of one thread in one wave; returns the number of items it allocated.
uint64_t run(uint64_t seed, uint32_t items) {
  Random random(seed);
  std::vector<Item*> kept;   // until the thread ends
  std::vector<Item*> young;  // for a while
  uint64_t allocated = 0;
  for (uint32_t i = 0; i < items; ++i) {
    const uint32_t dice = random.below(100);
    Item* item = new_item(random);
    ++allocated;
    if (dice < 10) {
      kept.push_back(item);
    } else {
      young.push_back(item);
    }
    if (dice >= 50) {  // drop a random young one
      const uint32_t victim = random.below(static_cast<uint32_t>(young.size()) | 1);
      if (victim < young.size()) {
        free_item(young[victim]);
        young[victim] = young.back();
        young.pop_back();
      }
    }
    if (dice >= 75 && !young.empty()) {  // swap one with whatever thread was here before
      Item* mine = young.back();
      young.back() = g_table[random.below(kTable)].exchange(mine, std::memory_order_acq_rel);
      if (young.back() == nullptr) young.pop_back();
    }
  }
  for (Item* item : young) free_item(item);
  for (Item* item : kept) free_item(item);
  return allocated;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Waves of threads with mixed lifetimes and migrating objects (mstress).");
  const uint32_t threads = options.threads();
  const uint64_t waves = options.work("--waves", 20, "times that all threads are started anew");
  const uint32_t items = options.count("--items", 200000, "items that a thread allocates in a wave");
  options.done();

  std::atomic<uint64_t> allocated{0};
  const double seconds = workload::seconds_of([&] {
    for (uint64_t wave = 0; wave < waves; ++wave) {
      workload::on_threads(threads, [&](uint32_t id) { allocated += run(wave * 1000 + id, items); });
      // Half of the table is emptied between waves, the rest outlives the threads that filled it.
      for (uint64_t i = wave % 2; i < kTable; i += 2) free_item(g_table[i].exchange(nullptr));
    }
    for (auto& entry : g_table) free_item(entry.exchange(nullptr));
  });
  workload::report("mstress", allocated, seconds, allocated);
}
