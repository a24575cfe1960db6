// A block of 16 bytes, one of 32, and so on to 512, each freed before the next is allocated.
// Stands for: tp of Mallacc (Kanev et al., ASPLOS 2017), "throughput", with the sizes of its published code (its text
// starts at 32): every pair hits the same thread cache, and 32 size classes take turns, so that nothing which remembers
// only the last few classes helps.

#include "strides.h"

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "malloc and free, sizes in steps (tp of Mallacc).", workload::Chance::kNone);
  options.one_thread();
  const uint64_t pairs = options.work("--pairs", 150000000, "blocks allocated and freed");
  const uint32_t step = options.count("--step", 16, "bytes between two sizes, and the smallest of them");
  const uint32_t max_size = options.count("--max", 512, "largest block in bytes");
  const uint32_t warm = options.count("--warm", 0, "blocks of each size that are allocated and freed before");
  options.done();
  workload::Options::accept(step >= 4 && step <= max_size, "--step must be 4 or more, and no more than --max");

  std::vector<uint32_t> sizes;
  for (uint32_t size = step; size <= max_size; size += step) sizes.push_back(size);
  workload::warm_up(sizes, warm);
  workload::strides("tp", sizes, pairs, workload::malloc_and_free);
}
