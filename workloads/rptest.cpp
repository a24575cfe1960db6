// Loops that fill a window of blocks of mixed sizes, free part of it out of order, and give part of it to other
// threads. Stands for: the benchmark that comes with rpmalloc (Jansson), "rptest" in the mimalloc paper; rebuilt from
// its description: sizes from 16 to 16000 bytes with a linear fall-off, and a share of the blocks freed by another
// thread.

#include <atomic>

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

// A stack of blocks that other threads left here to be freed; linked through the blocks' own bodies.
struct Given {
  Block header;
  Given* next;
};

// At most as many as a window of them lie there: a thread that is far behind, or done, would let memory measure the
// scheduler.
struct alignas(64) Inbox {
  std::atomic<Given*> head{nullptr};
  std::atomic<uint32_t> held{0};

  bool give(Block* block, uint32_t limit) {
    if (held.load(std::memory_order_relaxed) >= limit) return false;
    held.fetch_add(1, std::memory_order_relaxed);
    auto* given = reinterpret_cast<Given*>(block);
    given->next = head.load(std::memory_order_relaxed);
    while (!head.compare_exchange_weak(given->next, given, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return true;
  }
};

uint32_t falling_size(Random& random, uint32_t low, uint32_t high) {
  // The smaller of two uniform numbers: density falls linearly from low to high.
  const uint32_t a = random.between(low, high);
  const uint32_t b = random.between(low, high);
  return a < b ? a : b;
}

uint64_t free_given(Inbox& inbox) {
  uint64_t sum = 0;
  uint32_t freed = 0;
  Given* given = inbox.head.exchange(nullptr, std::memory_order_acquire);
  while (given != nullptr) {
    Given* next = given->next;
    sum += workload::free_block(&given->header);
    given = next;
    ++freed;
  }
  inbox.held.fetch_sub(freed, std::memory_order_relaxed);
  return sum;
}

uint64_t work(std::vector<Inbox>& inboxes, uint32_t id, uint64_t loops, uint32_t window, uint32_t low, uint32_t high) {
  Random random(500 + id);
  std::vector<Block*> blocks(window, nullptr);
  const auto threads = static_cast<uint32_t>(inboxes.size());
  uint64_t sum = 0;
  for (uint64_t loop = 0; loop < loops; ++loop) {
    // A random stretch of the window is replaced, in a stride that scatters the frees.
    const uint32_t length = random.between(window / 8, window / 2);
    const uint32_t stride = random.between(1, 13) | 1;
    uint32_t at = random.below(window);
    for (uint32_t i = 0; i < length; ++i, at = (at + stride) % window) {
      if (Block* old = blocks[at]) {
        // One in five is freed by the next thread.
        const bool given = threads > 1 && i % 5 == 0 && inboxes[(id + 1) % threads].give(old, window);
        if (!given) sum += workload::free_block(old);
      }
      blocks[at] = workload::new_block(falling_size(random, low, high), static_cast<uint32_t>(loop + i));
    }
    sum += free_given(inboxes[id]);
  }
  for (Block* block : blocks) sum += block == nullptr ? 0 : workload::free_block(block);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Mixed sizes, scattered frees, some by other threads (rptest).");
  const uint32_t threads = options.threads();
  const uint64_t loops = options.work("--loops", 1000, "stretches that each thread replaces");
  const uint32_t window = options.count("--window", 8000, "blocks that a thread holds");
  const uint32_t low = options.count("--min", 32, "smallest block in bytes");
  const uint32_t high = options.count("--max", 16000, "largest block in bytes");
  options.done();
  workload::Options::accept(low >= 32, "--min must leave room for a link: 32 or more");

  std::vector<Inbox> inboxes(threads);
  std::vector<uint64_t> sums(threads);
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    workload::on_threads(threads, [&](uint32_t id) { sums[id] = work(inboxes, id, loops, window, low, high); });
    for (Inbox& inbox : inboxes) checksum += free_given(inbox);
  });
  for (uint64_t sum : sums) checksum += sum;
  workload::report("rptest", threads * loops, seconds, checksum);
}
