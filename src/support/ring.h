// A single-producer single-consumer ring: how a program thread and the support core send each other pointers and
// requests without an atomic read-modify-write (SpeedMalloc section 4's message queues, in memory).
//
// Each end keeps its index on a line of its own, beside what it last saw of the other end's, so that a line moves
// between the cores only when one end has used up what it knew of.
//
// Synchronization: one thread may push and one may pop at a time. Where several may, they hold a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace annex::support {

template <class T, uint32_t kSlots>
class Ring {
  static_assert((kSlots & (kSlots - 1)) == 0);

 public:
  // Pushes up to `count` values; how many there was room for.
  uint32_t push(const T* values, uint32_t count) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (kSlots - (tail - head_seen_) < count) head_seen_ = head_.load(std::memory_order_acquire);
    count = std::min(count, kSlots - (tail - head_seen_));
    for (uint32_t i = 0; i < count; ++i) slots_[(tail + i) % kSlots] = values[i];
    tail_.store(tail + count, std::memory_order_release);
    return count;
  }

  // Pops up to `most` values; how many there were.
  uint32_t pop(T* values, uint32_t most) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (tail_seen_ == head) tail_seen_ = tail_.load(std::memory_order_acquire);
    const uint32_t count = std::min(most, tail_seen_ - head);
    for (uint32_t i = 0; i < count; ++i) values[i] = slots_[(head + i) % kSlots];
    head_.store(head + count, std::memory_order_release);
    return count;
  }

  // For the consumer.
  bool empty() const { return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t tail_seen_ = 0;
  alignas(64) std::atomic<uint32_t> tail_{0};
  uint32_t head_seen_ = 0;
  alignas(64) T slots_[kSlots] = {};
};

}  // namespace annex::support
