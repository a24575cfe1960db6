// Threads that allocate bursts of skewed sizes and swap part of them with each other, so that many are freed elsewhere.
// Stands for: sh8bench of MicroQuill's SmartHeap, used by the mimalloc, snmalloc and BatchIt papers; rebuilt from their
// descriptions: as sh6bench, with blocks that migrate between threads.

#include <atomic>

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

// A burst of blocks on its way from one thread to another.
struct Parcel {
  std::vector<Block*> blocks;
};

struct alignas(64) Mailbox {
  std::atomic<Parcel*> parcel{nullptr};
};

uint32_t skewed_size(Random& random, uint32_t max_size) {
  const uint32_t kind = random.below(100);
  if (kind < 70) return random.between(16, 128);
  if (kind < 95) return random.between(128, 512);
  return random.between(512, max_size);
}

uint64_t release(std::vector<Block*>& blocks) {
  uint64_t sum = 0;
  for (Block* block : blocks) sum += workload::free_block(block);
  blocks.clear();
  return sum;
}

uint64_t work(std::vector<Mailbox>& mailboxes, uint32_t id, uint64_t bursts, uint32_t length, uint32_t max_size) {
  Random random(id);
  std::vector<Block*> kept;
  uint64_t sum = 0;
  for (uint64_t burst = 0; burst < bursts; ++burst) {
    auto* parcel = new Parcel;
    for (uint32_t i = 0; i < length; ++i) {
      Block* block = workload::new_block(skewed_size(random, max_size), static_cast<uint32_t>(i + burst));
      (i % 2 == 0 ? parcel->blocks : kept).push_back(block);
    }
    // Leaves its parcel with a random thread and takes away what lay there, whoever had left it.
    Mailbox& mailbox = mailboxes[random.below(static_cast<uint32_t>(mailboxes.size()))];
    if (Parcel* found = mailbox.parcel.exchange(parcel, std::memory_order_acq_rel)) {
      sum += release(found->blocks);
      delete found;
    }
    if (burst % 4 == 3) sum += release(kept);
  }
  return sum + release(kept);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Bursts of blocks that migrate between threads (sh8bench).");
  const uint32_t threads = options.threads();
  const uint64_t bursts = options.work("--bursts", 120000, "bursts of each thread");
  const uint32_t length = options.count("--length", 250, "blocks in a burst");
  const uint32_t max_size = options.count("--max", 1000, "largest block in bytes");
  options.done();

  std::vector<Mailbox> mailboxes(threads);
  std::vector<uint64_t> sums(threads);
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    workload::on_threads(threads, [&](uint32_t id) { sums[id] = work(mailboxes, id, bursts, length, max_size); });
    for (Mailbox& mailbox : mailboxes) {
      Parcel* parcel = mailbox.parcel.load();
      if (parcel == nullptr) continue;
      checksum += release(parcel->blocks);
      delete parcel;
    }
  });
  for (uint64_t sum : sums) checksum += sum;
  workload::report("sh8bench", threads * bursts * length, seconds, checksum);
}
