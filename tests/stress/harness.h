// What the stress tests share: threads with small stacks, parcels that are checked when they are
// freed, and a slot table through which threads hand blocks to each other.
//
// A failed check prints where and aborts: with a broken heap nothing that follows can be trusted.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "annex/annex.h"
#include "common/opaque.h"
#include "common/pattern.h"
#include "common/random.h"

#define DEMAND(condition)                                                                                             \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      char text_[512];                                                                                                \
      const int length_ = snprintf(text_, sizeof text_, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      if (length_ > 0 && write(2, text_, static_cast<std::size_t>(length_)) < 0) _exit(3);                            \
      abort();                                                                                                        \
    }                                                                                                                 \
  } while (false)

namespace annex_test {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

// How much smaller the work is where each access is watched.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 12;
#elif defined(ANNEX_TEST_SANITIZED)
inline constexpr int kSlowdown = 8;
#else
inline constexpr int kSlowdown = 1;
#endif

// A thread with a stack that hundreds of can be afforded, also under a limit on address space.
class Thread {
 public:
  explicit Thread(std::function<void()> body);
  ~Thread();
  Thread(Thread&& other) noexcept : thread_(other.thread_), joined_(other.joined_) { other.joined_ = true; }
  Thread(const Thread&) = delete;
  void join();

 private:
  pthread_t thread_;
  bool joined_ = false;
};

// Runs body(0) ... body(count - 1), each in its own thread, all of which exist before the first begins; waits for all.
void in_threads(int count, const std::function<void(int)>& body);

// A block that knows its size and key: the first 16 bytes hold them, the rest the pattern.
struct Parcel {
  std::uint64_t bytes;
  std::uint64_t key;
};

// `bytes` is at least sizeof(Parcel). Null where memory is exhausted.
Parcel* make_parcel(std::size_t bytes, std::uint64_t key);
void check_parcel(const Parcel* parcel);
void free_parcel(Parcel* parcel);  // null is fine

// Mostly small sizes, now and then up to a megabyte.
std::size_t parcel_size(Random& random);

// Slots that hold one parcel or none. Whoever takes one owns it.
class Slots {
 public:
  static constexpr std::size_t kCount = 1024;
  ~Slots() { clear(); }
  Parcel* exchange(std::size_t index, Parcel* parcel) {
    return slots_[index % kCount].exchange(parcel, std::memory_order_acq_rel);
  }
  void clear() {
    for (auto& slot : slots_) free_parcel(slot.exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  std::atomic<Parcel*> slots_[kCount] = {};
};

// `steps` times: put a new parcel into a random slot, check and free what was there.
void trade(Slots& slots, Random& random, int steps);

// How many CPUs the calling thread may run on.
inline int allowed_cpus() {
  cpu_set_t set;
  DEMAND(sched_getaffinity(0, sizeof set, &set) == 0);
  return CPU_COUNT(&set);
}

inline annex_stats_t stats_now() {
  annex_stats_t stats;
  DEMAND(annex_stats(&stats) == 0);
  return stats;
}

}  // namespace annex_test
