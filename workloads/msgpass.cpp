// Producers send small batches of messages to random consumers, with back-pressure.
// Stands for: the message passing benchmark of BatchIt (Filardo and Parkinson, ISMM 2024), section 4.3, with its
// parameters: 1 to 16 messages a batch of four sizes, at most 4096 messages outstanding, a fixed number of batches for
// each producer (there 2^20, here three times that), a yield every 16 batches.

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

// Many producers, one consumer: producers link whole batches in front, the consumer takes everything, or sleeps.
struct alignas(64) Inbox {
  std::atomic<Message*> head{nullptr};
  Message end{};  // sent last

  void push(Message* first, Message* last) {
    Message* before = head.load(std::memory_order_relaxed);
    do {
      last->next = before;
    } while (!head.compare_exchange_weak(before, first, std::memory_order_release, std::memory_order_relaxed));
    if (before == nullptr) head.notify_one();  // the messages are the consumer's by now
  }

  Message* take() {
    head.wait(nullptr, std::memory_order_acquire);
    return head.exchange(nullptr, std::memory_order_acquire);
  }
};

// Messages sent and not yet freed. A producer that finds too many sleeps until half of them are gone, and a consumer
// without messages sleeps too: a spinning wait would measure the scheduler.
class alignas(64) Pressure {
 public:
  explicit Pressure(int64_t limit) : limit_(limit) {}

  void sent(int64_t messages) {
    if (outstanding_.fetch_add(messages, std::memory_order_relaxed) + messages <= limit_) return;
    for (int64_t now = outstanding_.load(); now > limit_ / 2; now = outstanding_.load()) outstanding_.wait(now);
  }

  void freed(int64_t messages) {
    const int64_t before = outstanding_.fetch_sub(messages, std::memory_order_relaxed);
    if (before > limit_ / 2 && before - messages <= limit_ / 2) outstanding_.notify_all();
  }

  int64_t outstanding() const { return outstanding_.load(); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> outstanding_{0};
};

void produce(std::vector<Inbox>& inboxes, Pressure& pressure, uint32_t id, uint64_t batches) {
  Random random(id);
  for (uint64_t i = 0; i < batches; ++i) {
    const uint32_t length = random.between(1, 16);
    const uint32_t size = kSizes[random.below(4)];
    Message* first = nullptr;
    Message* last = nullptr;
    for (uint32_t m = 0; m < length; ++m) {
      auto* message = static_cast<Message*>(malloc(size));
      message->next = first;
      message->value = size;
      if (last == nullptr) last = message;
      first = message;
    }
    Inbox& inbox = inboxes[random.below(static_cast<uint32_t>(inboxes.size()))];
    inbox.push(first, last);
    pressure.sent(length);
    if (i % kYieldEvery == kYieldEvery - 1) std::this_thread::yield();
  }
}

uint64_t consume(Inbox& inbox, Pressure& pressure) {
  uint64_t sum = 0;
  for (;;) {
    int64_t freed = 0;
    bool closed = false;
    Message* message = inbox.take();
    while (message != nullptr) {
      Message* next = message->next;
      if (message == &inbox.end) {
        closed = true;
      } else {
        sum += message->value;
        free(message);
        ++freed;
      }
      message = next;
    }
    pressure.freed(freed);
    if (closed) return sum;
  }
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Message passing with back-pressure (BatchIt, section 4.3).");
  const uint32_t threads = options.threads();
  const uint64_t batches = options.work("--batches", 3u << 20, "batches that each producer sends");
  const uint32_t limit = options.count("--outstanding", 4096, "messages sent and not yet freed, at most");
  options.done();

  const uint32_t producers = threads < 2 ? 1 : threads / 2;
  const uint32_t consumers = threads < 2 ? 1 : threads - producers;
  std::vector<Inbox> inboxes(consumers);
  std::vector<uint64_t> sums(consumers);
  Pressure pressure(limit);
  const double seconds = workload::seconds_of([&] {
    std::vector<std::thread> consuming;
    for (uint32_t i = 0; i < consumers; ++i)
      consuming.emplace_back([&, i] { sums[i] = consume(inboxes[i], pressure); });
    workload::on_threads(producers, [&](uint32_t id) { produce(inboxes, pressure, id, batches); });
    for (Inbox& inbox : inboxes) inbox.push(&inbox.end, &inbox.end);
    for (std::thread& thread : consuming) thread.join();
  });
  uint64_t checksum = 0;
  for (uint64_t sum : sums) checksum += sum;
  workload::require(pressure.outstanding() == 0, "messages were lost");
  workload::report("msgpass", producers * batches, seconds, checksum);
}
