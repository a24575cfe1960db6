// Small blocks in overlapping batches, freed in several orders, no block ever crosses threads.
// Stands for: sh6bench of MicroQuill's SmartHeap, used by the mimalloc and SpeedMalloc papers; the pattern is rebuilt
// from their descriptions: sizes grow through a range, small ones far more often than large ones, and a share of each
// batch is freed at once, another share in reverse order, the rest in the order of allocation.

#include "block.h"

using workload::Block;

namespace {

// How many blocks of a size are allocated in one pass: halves with every doubling of the size.
uint32_t repeats_of(uint32_t size) {
  uint32_t repeats = 64;
  for (uint32_t s = 16; s < size && repeats > 1; s *= 2) repeats /= 2;
  return repeats;
}

// One pass over all sizes; blocks of the previous pass are freed while this one allocates, so the two overlap.
uint64_t pass(uint32_t number, uint32_t max_size, std::vector<Block*>& older, std::vector<Block*>& newer) {
  uint64_t ops = 0;
  size_t next_old = 0;
  for (uint32_t size = 1; size <= max_size; size += 1 + size / 8) {
    for (uint32_t r = repeats_of(size); r > 0; --r) {
      newer.push_back(workload::new_block(size, number ^ size));
      ++ops;
      if (r % 3 == 0) {  // a short-lived one, gone at once
        workload::free_block(workload::new_block(size, size));
        ++ops;
      }
      if (r % 2 == 0 && next_old < older.size() / 2) workload::free_block(older[next_old++]);
    }
  }
  while (older.size() > next_old) {  // the younger half in reverse
    workload::free_block(older.back());
    older.pop_back();
  }
  older.clear();
  older.swap(newer);
  return ops;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Small blocks in overlapping batches (sh6bench).", workload::Chance::kNone);
  const uint32_t threads = options.threads();
  const uint64_t passes = options.work("--passes", 54000, "passes over all sizes by each thread");
  const uint32_t max_size = options.count("--max", 1000, "largest block in bytes");
  options.done();

  std::vector<uint64_t> ops(threads);
  const double seconds = workload::seconds_of([&] {
    workload::on_threads(threads, [&](uint32_t id) {
      std::vector<Block*> older;
      std::vector<Block*> newer;
      for (uint64_t i = 0; i < passes; ++i) ops[id] += pass(static_cast<uint32_t>(i), max_size, older, newer);
      for (Block* block : older) workload::free_block(block);
    });
  });
  uint64_t total = 0;
  for (uint64_t one : ops) total += one;
  workload::report("sh6bench", total, seconds, total);
}
