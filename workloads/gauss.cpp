// Small and medium blocks that are never freed.
// Stands for: gauss of Mallacc (Kanev et al., ASPLOS 2017): thread caches and free lists are never refilled by frees,
// so what is measured is how an allocator carves fresh memory. Here --limit bounds how much there may be.

#include "gauss.h"

using workload::Block;

namespace {

struct Kept {
  Block header;
  Kept* before;
};

Kept* g_last = nullptr;  // not of main: what it leads to is kept on purpose, and no leak to a leak checker

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Blocks that are never freed (gauss of Mallacc).");
  options.one_thread();
  const uint64_t blocks = options.work("--blocks", 10000000, "blocks to allocate");
  const uint64_t limit = uint64_t{options.count("--limit", 2048, "stop at so many MiB of blocks")} << 20;
  options.done();

  workload::Random random(1);
  uint64_t count = 0;
  uint64_t bytes = 0;
  const double seconds = workload::seconds_of([&] {
    for (; count < blocks && bytes < limit; ++count) {
      uint32_t size = workload::gauss_size(random);
      if (size < sizeof(Kept) + 4) size = sizeof(Kept) + 4;
      auto* block = reinterpret_cast<Kept*>(workload::new_block(size, static_cast<uint32_t>(count)));
      block->before = g_last;
      g_last = block;
      bytes += size;
    }
    // Every block must still hold what was written.
    uint64_t seen = 0;
    for (Kept* block = g_last; block != nullptr; block = block->before, ++seen) {
      workload::require(block->header.tag == static_cast<uint32_t>(count - 1 - seen) &&
                            *workload::block_tail(&block->header) == ~block->header.tag,
                        "a block's content changed");
    }
    workload::require(seen == count, "a block was lost");
  });
  workload::report("gauss", count, seconds, bytes);
}
