// Server threads that replace random blocks and hand them all to a successor thread.
// Stands for: Larson and Krishnan, Memory Allocation for Long-Running Server Applications (ISMM 1998).
//
// Each slot of a thread's table holds a block of random size. A thread frees the block of a random slot and allocates a
// new one there, many times; then it starts its successor, which inherits the table, and ends. So blocks live on after
// the thread that allocated them, and are freed by its descendants.
//
// A run with less work has fewer generations, so that each still replaces every block some times.

#include <algorithm>

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

struct Lineage {
  std::vector<Block*> slots;
  Random random;
  uint64_t sum = 0;

  explicit Lineage(uint32_t id) : random(1000 + id) {}
};

uint32_t g_min_size;
uint32_t g_max_size;
uint64_t g_replacements;  // by one thread of a lineage

Block* fresh(Lineage& lineage) {
  return workload::new_block(lineage.random.between(g_min_size, g_max_size),
                             static_cast<uint32_t>(lineage.random.next()));
}

// The life of one server thread.
void generation(Lineage& lineage) {
  const auto slots = static_cast<uint32_t>(lineage.slots.size());
  for (uint64_t i = 0; i < g_replacements; ++i) {
    Block*& slot = lineage.slots[lineage.random.below(slots)];
    lineage.sum = lineage.sum * 31 + workload::free_block(slot);
    slot = fresh(lineage);
  }
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Server threads that hand their blocks to successors (Larson).");
  const uint32_t threads = options.threads();
  const uint32_t slots = options.count("--slots", 5000, "blocks that a lineage holds at a time");
  g_min_size = options.count("--min", 8, "smallest block in bytes");
  g_max_size = options.count("--max", 1000, "largest block in bytes");
  const uint32_t most_generations =
      options.count("--generations", 50, "successive threads of a lineage, at least 4 replacements of a slot for each");
  const uint64_t replacements = options.work("--replacements", 28000000, "blocks replaced by a lineage in all");
  options.done();
  workload::Options::accept(slots >= 1, "--slots must be 1 or more");
  const auto generations =
      static_cast<uint32_t>(std::max<uint64_t>(1, std::min<uint64_t>(replacements / slots / 4, most_generations)));
  g_replacements = replacements / generations;

  std::vector<Lineage> lineages;
  for (uint32_t i = 0; i < threads; ++i) lineages.emplace_back(i);
  uint64_t checksum = 0;
  workload::RegionOfThreads region(threads);
  const double seconds = workload::seconds_with_building([&] {
    workload::on_threads(threads, [&](uint32_t id) {
      Lineage& lineage = lineages[id];
      lineage.slots.resize(slots);
      for (Block*& slot : lineage.slots) slot = fresh(lineage);
      region.built();
      for (uint32_t i = 0; i < generations; ++i) std::thread(generation, std::ref(lineage)).join();
      region.worked();
    });
    for (Lineage& lineage : lineages) {
      for (Block* block : lineage.slots) lineage.sum += workload::free_block(block);
      checksum ^= lineage.sum;
    }
  });
  workload::report("larson", threads * (g_replacements * generations + slots), seconds, checksum);
}
