// Blocks of 32, 64, ... 256 bytes in turn by operator new, each given back by the operator delete that is told the
// size. Stands for: sized_deletes of Mallacc (Kanev et al., ASPLOS 2017), eight sizes an iteration: an allocator that
// trusts the size need not look for it.

#include <new>

#include "strides.h"

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "new and delete with the size known (sized_deletes of Mallacc).",
                            workload::Chance::kNone);
  options.one_thread();
  const uint64_t pairs = options.work("--pairs", 120000000, "blocks allocated and freed");
  const uint32_t step = options.count("--step", 32, "bytes between two sizes, and the smallest of them");
  const uint32_t count = options.count("--sizes", 8, "how many sizes take turns");
  const uint32_t warm = options.count("--warm", 0, "blocks of each size that are allocated and freed before");
  options.done();
  workload::Options::accept(step >= 4 && count >= 1, "--step must be 4 or more and --sizes 1 or more");

  std::vector<uint32_t> sizes;
  for (uint32_t i = 1; i <= count; ++i) sizes.push_back(i * step);
  workload::warm_up(sizes, warm);
  workload::strides("sized-deletes", sizes, pairs, [](uint32_t size, uint32_t number) {
    auto* block = static_cast<volatile uint32_t*>(::operator new(size));
    *block = number + size;
    const uint32_t read = *block;
    ::operator delete(const_cast<uint32_t*>(block), static_cast<size_t>(size));
    return read;
  });
}
