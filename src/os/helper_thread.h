// Helper threads that the C library does not know of.
//
// They exist so that an idle process can give memory back, and so that allocation can have a core of its own. A pthread
// would turn a single-threaded process into a multi-threaded one in libc's eyes: stdio and reference counts would start
// to lock, which is the very cost that the solo flavour avoids. A raw thread changes nothing of that. The price: its
// code may use no thread-local storage (it shares the starter's, errno included), no libc call beyond plain computation
// and the vDSO clock, and system calls only through system_call.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace annex::os {

// One helper thread at a time, in static storage.
class HelperThread {
 public:
  // As a pthread's, since under the sanitizers it is one; nobody asks for what it returns.
  using Body = void*(void* argument);

  // Runs body(argument); the thread ends when body returns. The caller makes sure (under its own lock) that the
  // previous one has announced its end. All signals are blocked in it. False where no thread could be started.
  bool start(Body* body, void* argument);

  // In a forked child, which has no helper whatever its parent had.
  void forget_after_fork() { stack_user_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr size_t kStackBytes = 16384;

  long clone_onto_stack(Body* body, void* argument);

  // The kernel clears this when the thread is truly gone and its stack is free again.
  std::atomic<uint32_t> stack_user_{0};
  alignas(64) unsigned char stack_[kStackBytes] = {};
};

// For use inside `body`: sleeps; has a name of its own in `top -H` (at most 15 characters), not its starter's.
void helper_sleep_ms(long milliseconds);
void helper_is_named(const char* name);

}  // namespace annex::os
