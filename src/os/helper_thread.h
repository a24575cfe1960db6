// Helper threads: the library's own, for work that a program's threads should not wait for.
//
// They are made by pthread_create, so libc knows of them: its setuid, setgid and setgroups reach them at once, and they
// have thread-local storage of their own. What the kernel keeps for each thread and libc passes on to none
// (capabilities, no_new_privs, seccomp filters, namespaces) a thread inherits from the one that made it, its maker. So
// that no helper keeps what the program gives up later:
//
//   - a helper that has nothing to do ends, and the next one inherits what its maker has then
//   - entry/privileges.cpp ends all helpers before the calls that change any of it
//   - must_end() compares helper and maker (the process's first thread where the maker has ended), for changes made in
//     any other way: while a helper works, and when it has slept
//
// All signals are blocked in a helper but those that libc uses itself.
//
// Synchronization: one lock, held while a helper is made or ended. A thread that wants to make one only tries to take
// it, and else does without, as pthread_create allocates: so no call of malloc waits for the lock. The caller of start
// must hold no lock of the library, and the program must have called malloc, not free: libc itself calls free with its
// lock on the list of stacks held, which pthread_create takes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "os/system_call.h"

namespace annex::os {

class HelperThread {
 public:
  using Body = void(void* argument);

  // Runs body(argument) in a thread of that name (at most 15 characters). The caller makes sure that the previous
  // thread's body is about to return. Keeps errno.
  enum class Start {
    kMade,
    kNotNow,  // another one is being made, the previous one has not gone yet, or privileges are being changed
    kFailed,
  };
  Start start(const char* name, Body* body, void* argument);
  // No thread can be made any more, ever. To be asked before any system call that finds out whether to start one: a
  // filter of system calls may end the process for it.
  static bool ruled_out() { return ruled_out_.load(std::memory_order_relaxed); }

  // For the body. must_end: it has been asked to, or its privileges are not its maker's; compared every 50 ms at most.
  bool asked_to_end() const { return (signals_.load(std::memory_order_relaxed) & kEnd) != 0; }
  bool must_end();
  // Sleeps, but no longer than until it is asked to end, or woken since signals() returned `seen`. milliseconds < 0:
  // for as long as that takes.
  uint32_t signals() const { return signals_.load(std::memory_order_seq_cst); }
  void sleep_ms(long milliseconds, uint32_t seen);
  void sleep_ms(long milliseconds) { sleep_ms(milliseconds, signals()); }
  // For any thread.
  void wake();

 private:
  friend class NoHelpers;
  friend void forget_helpers_after_fork();
  static void* run(void* self);
  bool has_ended();
  bool make();
  void add_to_list();

  static constexpr uint32_t kEnd = 1;    // in signals_: it has been asked to end
  static constexpr uint32_t kWoken = 2;  // how often it has been woken is counted from here on
  std::atomic<uint32_t> signals_{0};
  static constinit std::atomic<bool> ruled_out_;
  bool made_ = false;  // and not yet joined
  bool listed_ = false;
  pthread_t thread_ = {};
  HelperThread* next_ = nullptr;

  const char* name_ = nullptr;
  Body* body_ = nullptr;
  void* argument_ = nullptr;
  long maker_ = 0;
  long id_ = 0;
  uint64_t compared_ms_ = 0;
};

// The process in which there may be helpers; 0 before the library is loaded.
extern constinit std::atomic<long> helpers_process;

// The library is loaded: from now on there may be helpers, in this process.
inline void allow_helpers() { helpers_process.store(system_call(SYS_getpid), std::memory_order_relaxed); }

// Around fork: while the lock is held, no helper is being made or ended. A forked child has none.
void hold_helpers_lock_for_fork();
void forget_helpers_after_fork();

// While an object of this class exists there is no helper thread. Constructed by a program thread that holds no lock of
// the library. The destructor makes no system call: the program may just have forbidden them all.
class NoHelpers {
 public:
  NoHelpers();
  ~NoHelpers();
  NoHelpers(const NoHelpers&) = delete;
  NoHelpers& operator=(const NoHelpers&) = delete;

  // No helper thread is made any more: the program has installed a system call filter, which may end it for that.
  void for_good();

 private:
  bool active_;  // false in a child that shares the parent's memory (vfork): it has no helpers
};

}  // namespace annex::os
