// A table of blocks of Pareto-distributed sizes: pick a slot, free it or fill it, and touch what is there.
// Stands for: alloc-test (No Bugs Hare, ithare.com 2018), used by the mimalloc, BatchIt and SpeedMalloc papers as
// "simulating real-world loads": mostly small blocks, a long tail of large ones, every byte of a block written and
// read. As there, the threads share the slots out among them, and about half are filled before the steps begin: so a
// short run is at work in a full table, too.

#include <algorithm>
#include <cmath>

#include "block.h"

using workload::Random;

namespace {

struct Slot {
  uint8_t* data = nullptr;
  uint32_t size = 0;
};

// Pareto with shape 1.2 from 16 bytes on, cut at max: about half of the blocks are under 32 bytes.
uint32_t pareto(Random& random, uint32_t max_size) {
  const double u = (static_cast<double>(random.next() >> 11) + 1) * 0x1.0p-53;
  const double size = 16.0 * std::pow(u, -1 / 1.2);
  return size >= max_size ? max_size : static_cast<uint32_t>(size);
}

void fill(Slot& slot, Random& random, uint32_t max_size, uint64_t step) {
  slot.size = pareto(random, max_size);
  slot.data = static_cast<uint8_t*>(malloc(slot.size));
  memset(slot.data, static_cast<int>(step & 0xff), slot.size);
}

uint64_t work(uint32_t id, uint32_t slots, uint64_t steps, uint32_t max_size, workload::RegionOfThreads& region) {
  Random random(77 + id);
  std::vector<Slot> table(slots);
  for (Slot& slot : table) {
    if (random.below(2) == 0) fill(slot, random, max_size, 0);
  }
  region.built();
  uint64_t sum = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    Slot& slot = table[random.below(slots)];
    if (slot.data != nullptr) {
      for (uint32_t i = 0; i < slot.size; i += 64) sum += slot.data[i];
      workload::require(slot.data[0] == slot.data[slot.size - 1], "a block's content changed");
      free(slot.data);
      slot.data = nullptr;
    } else {
      fill(slot, random, max_size, step);
    }
  }
  region.worked();
  for (Slot& slot : table) {
    if (slot.data != nullptr) free(slot.data);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Random slots, Pareto sizes (alloc-test).");
  const uint32_t threads = options.threads();
  const uint32_t slots = options.count("--slots", 262144, "slots of all threads' tables together");
  const uint64_t steps = options.work("--steps", 10000000, "slots that each thread visits");
  const uint32_t max_size = options.count("--max", 65536, "largest block in bytes");
  options.done();
  const uint32_t of_each = std::max(1u, slots / threads);

  std::vector<uint64_t> sums(threads);
  workload::RegionOfThreads region(threads);
  const double seconds = workload::seconds_with_building([&] {
    workload::on_threads(threads, [&](uint32_t id) { sums[id] = work(id, of_each, steps, max_size, region); });
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::report("alloc-test", threads * steps, seconds, checksum);
}
