// Active false sharing: threads allocate small blocks at the same time, and each writes only its own.
// Stands for: cache-thrash of Hoard (Berger et al., ASPLOS 2000), used by the mimalloc and BatchIt papers. An allocator
// that carves one cache line for several threads lets them take it from each other with every write.

#include "block.h"

namespace {

// Allocates a block, writes it again and again, frees it; never sees one of another thread.
uint64_t thrash(uint32_t size, uint64_t rounds, uint32_t writes) {
  uint64_t sum = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    auto* block = static_cast<volatile char*>(malloc(size));
    workload::write_over(block, size, writes);
    for (uint32_t i = 0; i < size; ++i) {
      workload::require(static_cast<unsigned char>(block[i]) == writes % 256, "a block's content changed");
      sum += static_cast<unsigned char>(block[i]);
    }
    free(const_cast<char*>(block));
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Active false sharing (cache-thrash).", workload::Chance::kNone);
  const uint32_t threads = options.threads();
  const uint32_t size = options.count("--size", 8, "bytes in a block");
  const uint64_t rounds = options.work("--rounds", 250000, "blocks that each thread writes");
  const uint32_t writes = options.count("--writes", 2000, "times that a thread writes each block");
  options.done();

  std::vector<uint64_t> sums(threads);
  const double seconds = workload::seconds_of(
      [&] { workload::on_threads(threads, [&](uint32_t id) { sums[id] = thrash(size, rounds, writes); }); });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::report("cache-thrash", threads * rounds, seconds, checksum);
}
