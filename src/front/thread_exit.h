// When a thread ends, what a front end has given it goes back: a heap (thread_heap.cpp), a client (thread_client.cpp).
//
// A pthread key tells of it. It is made when the first thread needs it, with no lock held: others may stand before the
// call, and allocate in it. Where the program has used all keys up, the next thread that needs it tries again.
//
// Synchronization: any thread may call.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace annex::front {

// Set when the thread's destructors have begun: it gets nothing any more, since nobody would put it back.
inline constinit thread_local bool thread_ends [[gnu::tls_model("initial-exec")]] = false;

template <class Given, void put_back(Given*)>
class ThreadExit {
 public:
  // Whether there is a key.
  bool has_key() {
    if (key_.load(std::memory_order_acquire) != kNone) return true;
    pthread_key_t key;
    if (pthread_key_create(&key, end) != 0) return key_.load(std::memory_order_acquire) != kNone;
    uint32_t found = kNone;
    if (!key_.compare_exchange_strong(found, key + 1, std::memory_order_acq_rel)) pthread_key_delete(key);
    return true;
  }

  // put_back(given) is called when the thread ends. False where the end can't be watched: then it has been called at
  // once.
  bool watch(Given* given) {
    // May allocate (a second-level table for a high key), which by now works.
    if (has_key() && pthread_setspecific(key_.load(std::memory_order_relaxed) - 1, given) == 0) return true;
    put_back(given);
    return false;
  }

 private:
  static constexpr uint32_t kNone = 0;

  // Runs as one of the thread's key destructors. Others may run after it, and allocate or free.
  static void end(void* given) {
    thread_ends = true;
    put_back(static_cast<Given*>(given));
  }

  std::atomic<uint32_t> key_{kNone};  // the key and one more
};

}  // namespace annex::front
