// Blocks of 40, 72, 104 and 136 bytes in turn, each freed before the next is allocated.
// Stands for: tp_small of Mallacc (Kanev et al., ASPLOS 2017), with the sizes of its published code, which also
// allocates one of 8 bytes: four size classes, each pair on another free list than the one before, the fastest that
// malloc can be.

#include "strides.h"

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "malloc and free, four small sizes (tp_small of Mallacc).",
                            workload::Chance::kNone);
  options.one_thread();
  const uint64_t pairs = options.work("--pairs", 150000000, "blocks allocated and freed");
  const uint32_t min_size = options.count("--min", 40, "smallest block in bytes");
  const uint32_t step = options.count("--step", 32, "bytes between two sizes");
  const uint32_t count = options.count("--sizes", 4, "how many sizes take turns");
  const uint32_t warm = options.count("--warm", 0, "blocks of each size that are allocated and freed before");
  options.done();
  workload::Options::accept(min_size >= 4 && count >= 1, "--min must be 4 or more and --sizes 1 or more");

  workload::require(workload::malloc_and_free(8, 0) == 8, "a block's content changed");
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < count; ++i) sizes.push_back(min_size + i * step);
  workload::warm_up(sizes, warm);
  workload::strides("tp-small", sizes, pairs, workload::malloc_and_free);
}
