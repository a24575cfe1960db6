// Producers send small batches of messages to random consumers, with back-pressure.
// Stands for: the message passing benchmark of BatchIt (Filardo and Parkinson, ISMM 2024), section 4.3, with its
// parameters: 1 to 16 messages a batch of four sizes, at most 4096 messages outstanding, a fixed number of batches for
// each producer, a yield every 16 batches.

#include <atomic>

#include "block.h"

using workload::Random;

namespace {

constexpr uint32_t kSizes[] = {48, 64, 96, 128};
constexpr uint32_t kYieldEvery = 16;

struct Message {
  Message* next;
  uint64_t value;
};

// Many producers, one consumer: producers link whole batches in front, the consumer takes everything.
struct alignas(64) Inbox {
  std::atomic<Message*> head{nullptr};
};

std::atomic<int64_t> g_outstanding{0};

void produce(std::vector<Inbox>& inboxes, uint32_t id, uint64_t batches, int64_t limit) {
  Random random(id);
  for (uint64_t i = 0; i < batches; ++i) {
    const uint32_t length = random.between(1, 16);
    Message* first = nullptr;
    Message* last = nullptr;
    const uint32_t size = kSizes[random.below(4)];
    for (uint32_t m = 0; m < length; ++m) {
      auto* message = static_cast<Message*>(malloc(size));
      message->next = first;
      message->value = size;
      if (last == nullptr) last = message;
      first = message;
    }
    Inbox& inbox = inboxes[random.below(static_cast<uint32_t>(inboxes.size()))];
    last->next = inbox.head.load(std::memory_order_relaxed);
    while (!inbox.head.compare_exchange_weak(last->next, first, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
    if (g_outstanding.fetch_add(length, std::memory_order_relaxed) + length > limit) {
      while (g_outstanding.load(std::memory_order_relaxed) > limit) std::this_thread::yield();
    }
    if (i % kYieldEvery == kYieldEvery - 1) std::this_thread::yield();
  }
}

uint64_t consume(Inbox& inbox, const std::atomic<bool>& closed) {
  uint64_t sum = 0;
  for (;;) {
    const bool last_look = closed.load(std::memory_order_acquire);
    Message* message = inbox.head.exchange(nullptr, std::memory_order_acquire);
    if (message == nullptr) {
      if (last_look) return sum;
      std::this_thread::yield();
      continue;
    }
    int64_t freed = 0;
    while (message != nullptr) {
      Message* next = message->next;
      sum += message->value;
      free(message);
      ++freed;
      message = next;
    }
    g_outstanding.fetch_sub(freed, std::memory_order_relaxed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Message passing with back-pressure (BatchIt, section 4.3).");
  const uint32_t threads = options.threads();
  const uint64_t batches = options.work("--batches", 1u << 20, "batches that each producer sends");
  const uint32_t limit = options.count("--outstanding", 4096, "messages sent and not yet freed, at most");
  options.done();

  const uint32_t producers = threads < 2 ? 1 : threads / 2;
  const uint32_t consumers = threads < 2 ? 1 : threads - producers;
  std::vector<Inbox> inboxes(consumers);
  std::vector<uint64_t> sums(consumers);
  std::atomic<bool> closed{false};
  const double seconds = workload::seconds_of([&] {
    std::vector<std::thread> consuming;
    for (uint32_t i = 0; i < consumers; ++i)
      consuming.emplace_back([&, i] { sums[i] = consume(inboxes[i], closed); });
    workload::on_threads(producers, [&](uint32_t id) { produce(inboxes, id, batches, limit); });
    closed.store(true, std::memory_order_release);
    for (std::thread& thread : consuming) thread.join();
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::require(g_outstanding.load() == 0, "messages were lost");
  workload::report("msgpass", producers * batches, seconds, checksum);
}
