// Producers allocate, consumers free: every block crosses threads.
// Stands for: Lever and Boreham, malloc() Performance in a Multithreaded Linux Environment (USENIX 2000), as
// xmalloc-test of mimalloc-bench: batches as long, and as many of them in the queue. That bound, with a fixed amount of
// work, lets memory measure the allocator and not the race. Its time depends on how many batches wait in the queue, and
// so on which is faster, malloc or free (docs/many-cores.md): the line at the end says how many, in the mean.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>

#include "block.h"

using workload::Block;
using workload::Random;

namespace {

// A batch is an array of blocks, itself allocated by one thread and freed by another.
using Batch = Block*;

// A bounded queue of batches; null closes it for one consumer.
class alignas(64) Queue {
 public:
  explicit Queue(size_t limit) : limit_(limit) {}

  void push(Batch* batch) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return batches_.size() < limit_; });
    batches_.push_back(batch);
    ++pushed_;
    waited_ += batches_.size();
    filled_.notify_one();
  }

  Batch* pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !batches_.empty(); });
    Batch* batch = batches_.front();
    batches_.pop_front();
    room_.notify_one();
    return batch;
  }

  // How many batches there are when one has come, in the mean. With no other thread there.
  double mean_length() const { return static_cast<double>(waited_) / static_cast<double>(pushed_); }

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<Batch*> batches_;
  uint64_t pushed_ = 0;
  uint64_t waited_ = 0;
};

void produce(Queue& queue, uint32_t id, uint64_t batches, uint32_t length, uint32_t max_size) {
  Random random(id);
  for (uint64_t i = 0; i < batches; ++i) {
    auto* batch = static_cast<Batch*>(malloc(length * sizeof(Block*)));
    for (Block*& block : std::span(batch, length)) {
      // Small sizes are far more common than large ones.
      const uint32_t size = 16 + random.below(random.below(max_size) + 1);
      block = workload::new_block(size, static_cast<uint32_t>(random.next()));
    }
    queue.push(batch);
  }
}

uint64_t consume(Queue& queue, uint32_t length) {
  uint64_t sum = 0;
  while (Batch* batch = queue.pop()) {
    for (Block* block : std::span(batch, length)) sum += workload::free_block(block);
    free(batch);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Producers allocate, consumers free (xmalloc).");
  const uint32_t threads = options.threads();
  const uint64_t batches = options.work("--batches", 7500, "batches that each producer sends");
  const uint32_t length = options.count("--batch", 4096, "blocks in a batch");
  const uint32_t max_size = options.count("--max", 500, "largest block in bytes");
  const uint32_t limit = options.count("--queue", 100, "batches that the queue holds");
  options.done();
  workload::Options::accept(length >= 1 && limit >= 1, "--batch and --queue must be 1 or more");

  const uint32_t producers = threads < 2 ? 1 : threads / 2;
  const uint32_t consumers = threads < 2 ? 1 : threads - producers;
  Queue queue(limit);
  std::vector<uint64_t> sums(consumers);
  const double seconds = workload::seconds_of([&] {
    std::vector<std::thread> consuming;
    for (uint32_t i = 0; i < consumers; ++i) consuming.emplace_back([&, i] { sums[i] = consume(queue, length); });
    workload::on_threads(producers, [&](uint32_t id) { produce(queue, id, batches, length, max_size); });
    for (uint32_t i = 0; i < consumers; ++i) queue.push(nullptr);
    for (std::thread& thread : consuming) thread.join();
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  char more[40];
  snprintf(more, sizeof more, ",\"queue\":%.2f", queue.mean_length());
  workload::report("xmalloc", producers * batches * length, seconds, checksum, more);
}
