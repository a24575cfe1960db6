// Threads, parcels and trading; see harness.h.
#include "stress/harness.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace annex_test {
namespace {

constexpr std::size_t kStack = 512 * 1024;

void* run(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

Thread::Thread(std::function<void()> body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  auto* copy = new std::function<void()>(std::move(body));
  int error = pthread_create(&thread_, &attributes, run, copy);
  if (error == EAGAIN) {
    // Under a limit the stack may not fit beside free memory that the allocator keeps until it is due.
    annex_purge();
    error = pthread_create(&thread_, &attributes, run, copy);
  }
  DEMAND(error == 0);
  pthread_attr_destroy(&attributes);
}

Thread::~Thread() { join(); }

void Thread::join() {
  if (joined_) return;
  joined_ = true;
  DEMAND(pthread_join(thread_, nullptr) == 0);
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::atomic<bool> go{false};
  std::vector<Thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      go.wait(false);
      body(i);
    });
  }
  go = true;
  go.notify_all();
}

Parcel* make_parcel(std::size_t bytes, std::uint64_t key) {
  void* block = opaque(annex_malloc(bytes));
  if (block == nullptr) return nullptr;
  DEMAND(is_aligned(block, 16));
  auto* parcel = static_cast<Parcel*>(block);
  parcel->bytes = bytes;
  parcel->key = key;
  fill(parcel + 1, bytes - sizeof(Parcel), key);
  return parcel;
}

void check_parcel(const Parcel* parcel) {
  DEMAND(annex_usable_size(parcel) >= parcel->bytes);
  DEMAND(mismatch(parcel + 1, parcel->bytes - sizeof(Parcel), parcel->key) == kNoMismatch);
}

void free_parcel(Parcel* parcel) {
  if (parcel == nullptr) return;
  check_parcel(parcel);
  annex_free(parcel);
}

std::size_t parcel_size(Random& random) {
  if (random.below(500) == 0) return random.between(40 * kKiB, kMiB);
  if (random.chance(10)) return random.between(500, 20 * kKiB);
  return random.between(sizeof(Parcel), 500);
}

void trade(Slots& slots, Random& random, int steps) {
  for (int i = 0; i < steps; ++i) {
    Parcel* parcel = make_parcel(parcel_size(random), random.next());
    DEMAND(parcel != nullptr);
    free_parcel(slots.exchange(random.next(), parcel));
  }
}

}  // namespace annex_test
