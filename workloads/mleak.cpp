// Threads that live for moments, end with blocks still allocated, and leave them to others: to their successor, to the
// main thread, and to destructors that run while the thread ends.
// Stands for: mleak of mimalloc-bench, a test that the memory of threads which end is neither lost nor kept from the
// threads that come: here each wave has the same amount of live memory as the one before, so resident memory that grows
// with the number of waves is memory that an allocator lost.

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

// What a thread leaves; the container and its buffer are of the thread that ends, too.
using Legacy = std::vector<Block*>;

uint64_t release(Legacy* legacy) {
  uint64_t sum = 0;
  for (Block* block : *legacy) sum += workload::free_block(block);
  delete legacy;
  return sum;
}

// A thread's own memory, freed by a destructor after the thread's function has returned.
struct Own {
  std::vector<Block*> blocks;
  ~Own() {
    for (Block* block : blocks) workload::free_block(block);
  }
};
thread_local Own t_own;

struct Lineage {
  Legacy* to_successor = nullptr;
  Legacy* to_main = nullptr;
  uint64_t sum = 0;
};

// The life of a thread: releases what its predecessor left, then allocates, and frees a quarter of that itself.
void live(Lineage& lineage, uint64_t stream, uint32_t blocks, uint32_t max_size) {
  Random random(stream);
  if (lineage.to_successor != nullptr) lineage.sum += release(lineage.to_successor);
  auto* to_successor = new Legacy;
  auto* to_main = new Legacy;
  std::vector<Block*> young;
  for (uint32_t i = 0; i < blocks; ++i) {
    Block* block = workload::new_block(random.between(8, max_size), static_cast<uint32_t>(random.next()));
    Legacy* const heirs[] = {&young, to_successor, to_main, &t_own.blocks};
    heirs[i % 4]->push_back(block);
  }
  for (Block* block : young) lineage.sum += workload::free_block(block);
  for (const Block* block : t_own.blocks) lineage.sum += block->size;
  lineage.to_successor = to_successor;
  lineage.to_main = to_main;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Threads that come, go, and leave memory behind (mleak).");
  const uint32_t threads = options.threads();
  const uint64_t waves = options.work("--waves", 15000, "times that all threads are started anew");
  const uint32_t blocks = options.count("--blocks", 1000, "blocks that a thread allocates");
  const uint32_t max_size = options.count("--max", 512, "largest block in bytes");
  options.done();
  workload::Options::accept(max_size >= 8, "--max must be 8 or more");

  std::vector<Lineage> lineages(threads);
  const double seconds = workload::seconds_of([&] {
    for (uint64_t wave = 0; wave < waves; ++wave) {
      workload::on_threads(threads, [&](uint32_t id) { live(lineages[id], wave << 16 | id, blocks, max_size); });
      for (Lineage& lineage : lineages) lineage.sum += release(lineage.to_main);
    }
    for (Lineage& lineage : lineages) lineage.sum += release(lineage.to_successor);
  });
  uint64_t checksum = 0;
  for (const Lineage& lineage : lineages) checksum += lineage.sum;
  workload::report("mleak", threads * waves * blocks, seconds, checksum);
}
