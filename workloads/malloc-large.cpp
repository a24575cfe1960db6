// Blocks of 5 to 25 MiB, twenty of them alive, random ones replaced.
// Stands for: malloc-large of mimalloc-bench (Leijen), used by the BatchIt paper: every block is beyond the size
// classes, and what counts is whether an allocator goes to the system for each, and how often pages are touched for the
// first time. Here a byte of every page is written and read again, as the program that asked for them would do.

#include "workload.h"

using workload::Random;

namespace {

struct Large {
  unsigned char* data = nullptr;
  size_t size = 0;
  uint32_t tag = 0;
};

// Allocates and writes one byte in every `stride`, and the last.
void fill(Large& block, size_t size, uint32_t tag, size_t stride) {
  block = {static_cast<unsigned char*>(malloc(size)), size, tag};
  workload::require(block.data != nullptr, "malloc returned null");
  for (size_t at = 0; at < size; at += stride) block.data[at] = static_cast<unsigned char>(tag + at / stride);
  block.data[size - 1] = static_cast<unsigned char>(tag);
}

// Checks what fill wrote, and frees.
void release(Large& block, size_t stride) {
  if (block.data == nullptr) return;
  bool good = block.data[block.size - 1] == static_cast<unsigned char>(block.tag);
  for (size_t at = 0; at + 1 < block.size; at += stride)
    good = good && block.data[at] == static_cast<unsigned char>(block.tag + at / stride);
  workload::require(good, "a block's content changed");
  free(block.data);
  block = {};
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Large blocks, some of them alive at a time (malloc-large).");
  options.one_thread();
  const uint64_t count = options.work("--blocks", 2000, "blocks to allocate");
  const uint32_t alive = options.count("--alive", 20, "blocks alive at a time");
  const uint32_t min_mib = options.count("--min", 5, "smallest block in MiB");
  const uint32_t max_mib = options.count("--max", 25, "largest block in MiB");
  const uint32_t stride = options.count("--stride", 4096, "bytes from one write to the next");
  options.done();
  workload::Options::accept(alive >= 1 && stride >= 1, "--alive and --stride must be 1 or more");
  workload::Options::accept(min_mib >= 1 && min_mib <= max_mib && max_mib < 4096,
                            "--min must be 1 or more, and --max no less");

  Random random(42);
  std::vector<Large> blocks(alive);
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t i = 0; i < count; ++i) {
      Large& block = blocks[random.below(alive)];
      release(block, stride);
      fill(block, random.between(min_mib << 20, max_mib << 20), static_cast<uint32_t>(i), stride);
      checksum += block.size;
    }
    for (Large& block : blocks) release(block, stride);
  });
  workload::report("malloc-large", count, seconds, checksum);
}
