// Passive false sharing: neighbours on one cache line are handed to different threads, freed there, and allocated
// again. Stands for: cache-scratch of Hoard (Berger et al., ASPLOS 2000). An allocator that gives a freed neighbour
// back to the thread that freed it lets two threads write one line for ever.

#include "block.h"

namespace {

// Frees the block that the main thread allocated, then writes blocks of its own, over and over.
uint64_t scratch(char* given, uint32_t size, uint64_t rounds, uint32_t writes) {
  free(given);
  uint64_t sum = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    auto* block = static_cast<volatile char*>(malloc(size));
    workload::write_over(block, size, writes);
    sum += static_cast<unsigned char>(block[size - 1]);
    free(const_cast<char*>(block));
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Passive false sharing (cache-scratch).", workload::Chance::kNone);
  const uint32_t threads = options.threads();
  const uint32_t size = options.count("--size", 8, "bytes in a block");
  const uint64_t rounds = options.work("--rounds", 250000, "blocks that each thread writes");
  const uint32_t writes = options.count("--writes", 2000, "times that a thread writes each block");
  options.done();

  std::vector<char*> given(threads);
  std::vector<uint64_t> sums(threads);
  const double seconds = workload::seconds_of([&] {
    for (char*& block : given) {
      block = static_cast<char*>(malloc(size));
      memset(block, 1, size);
    }
    workload::on_threads(threads, [&](uint32_t id) { sums[id] = scratch(given[id], size, rounds, writes); });
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::report("cache-scratch", threads * rounds, seconds, checksum);
}
