// Threads that each replace random blocks of a small table of their own; no block ever crosses threads.
// Stands for: bench-malloc-thread of the GNU C library's own benchmarks, used by the mimalloc and BatchIt papers: sizes
// from 4 bytes to 32 KiB, the fewer the larger, drawn beforehand into a list that is gone through again and again, and
// about a thousand blocks live in each thread. --work puts something else between two replacements, as programs do: so
// the share of allocation can be chosen. --filled lets each thread fill its table first, for runs that are too short
// to.

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

struct Step {
  uint32_t slot;
  uint32_t size;
};

// Sizes whose logarithm is uniform: as many from 4 to 8 as from 16 to 32 KiB, so the frequency falls as 1 / size.
std::vector<Step> draw(Random& random, uint32_t length, uint32_t slots, uint32_t low, uint32_t high) {
  const double span = std::log(static_cast<double>(high) / low);
  std::vector<Step> steps(length);
  for (Step& step : steps) {
    const double u = static_cast<double>(random.next() >> 11) * 0x1.0p-53;
    step.slot = random.below(slots);
    step.size = static_cast<uint32_t>(low * std::exp(u * span));
  }
  return steps;
}

// Random places of a table are counted up, each of some ten instructions.
class Beside {
 public:
  void work(uint32_t steps) {
    for (uint32_t i = 0; i < steps; ++i) ++table_[(state_ = workload::mix(state_ + 1)) % kEntries];
  }
  uint64_t last() const { return state_; }

 private:
  static constexpr size_t kEntries = 16384;  // 64 KiB: more than an L1 has
  std::vector<uint32_t> table_ = std::vector<uint32_t>(kEntries);
  uint64_t state_ = 0;
};

uint64_t work(uint32_t id, uint64_t replacements, uint32_t slots, uint32_t low, uint32_t high, uint32_t beside,
              bool filled, workload::RegionOfThreads& region) {
  constexpr uint32_t kDrawn = 8192;
  Beside table;
  Random random(300 + id);
  const std::vector<Step> steps = draw(random, kDrawn, slots, low, high);
  std::vector<Block*> blocks(slots, nullptr);
  for (uint32_t i = 0; filled && i < slots; ++i) blocks[i] = workload::new_block(steps[i % kDrawn].size, i);
  region.built();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < replacements; ++i) {
    const Step& step = steps[i % kDrawn];
    Block*& slot = blocks[step.slot];
    if (slot != nullptr) sum += workload::free_block(slot);
    slot = workload::new_block(step.size, static_cast<uint32_t>(i));
    table.work(beside);
  }
  region.worked();
  sum += table.last();
  for (Block* block : blocks) sum += block == nullptr ? 0 : workload::free_block(block);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Random slots and sizes in each thread's own table (glibc-thread).");
  const uint32_t threads = options.threads();
  const uint64_t replacements = options.work("--replacements", 20000000, "blocks that each thread allocates");
  const uint32_t slots = options.count("--slots", 1024, "blocks that a thread holds");
  const uint32_t low = options.count("--min", 4, "smallest block in bytes");
  const uint32_t high = options.count("--max", 32768, "largest block in bytes");
  const uint32_t beside = options.count("--work", 0, "steps of other work, of some ten instructions, between two");
  const uint32_t filled = options.count("--filled", 0, "1: tables are full before the first replacement");
  options.done();
  workload::Options::accept(slots >= 1 && low >= 1 && low <= high,
                            "--slots and --min must be 1 or more, --max no less than --min");

  std::vector<uint64_t> sums(threads);
  workload::RegionOfThreads region(threads);
  const double seconds = workload::seconds_with_building([&] {
    workload::on_threads(threads, [&](uint32_t id) {
      sums[id] = work(id, replacements, slots, low, high, beside, filled != 0, region);
    });
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::report("glibc-thread", threads * replacements, seconds, checksum);
}
