// Helper threads: the library's own, for work that a program's threads should not wait for.
//
// They are made by pthread_create, so libc knows of them: its setuid, setgid and setgroups reach them at once, and they
// have thread-local storage of their own. What the kernel keeps for each thread and libc passes on to none
// (capabilities, no_new_privs, seccomp filters, namespaces) a thread has from the one that made it, its maker. So that
// none keeps what the program gives up later:
//
//   - a helper that has nothing to do ends, and the next one has what its maker has then
//   - entry/privileges.cpp ends all helpers before the calls that change any of it
//   - must_end() compares helper and maker (the process's first thread where the maker has ended), for changes that
//     come another way
//
// All signals are blocked in a helper but those that libc uses itself.
//
// Synchronization: one lock, held while a helper is made or ended. Who makes one tries for it and else does without, as
// pthread_create allocates: so nobody waits for the lock inside malloc. Starting needs two things of its caller: no
// lock of the library held; and malloc, not free, to be what the program has called, since libc frees what a thread
// leaves with its list of stacks locked, which pthread_create needs.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "os/system_call.h"

namespace annex::os {

class HelperThread {
 public:
  using Body = void(void* argument);

  // Runs body(argument) in a thread of that name (at most 15 characters). The caller makes sure that the body of the
  // one before has said that it ends. False where none can be had, at this moment or at all. Keeps errno.
  bool start(const char* name, Body* body, void* argument);
  // There will be none any more, for good. Asked first by whoever makes system calls to find out whether to start one.
  static bool ruled_out();

  // For the body. must_end: it has been asked to, or has what its maker has not; compared every 50 ms at most.
  bool asked_to_end() const { return asked_.load(std::memory_order_relaxed) != 0; }
  bool must_end();
  // Sleeps, but no longer than until it is asked to end.
  void sleep_ms(long milliseconds);

 private:
  friend class NoHelpers;
  friend void forget_helpers_after_fork();
  static void* run(void* self);
  bool is_gone();
  bool make();
  void enlist();

  std::atomic<uint32_t> asked_{0};
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

// Around fork: no helper is being made or ended; a forked child has none.
void hold_helpers_lock_for_fork();
void forget_helpers_after_fork();

// While one exists there is no helper thread. Made by a program thread that holds no lock of the library. Its end makes
// no system call: the program may just have forbidden them all.
class NoHelpers {
 public:
  NoHelpers();
  ~NoHelpers();
  NoHelpers(const NoHelpers&) = delete;
  NoHelpers& operator=(const NoHelpers&) = delete;

  // There will be none any more: the program has installed a system call filter, which may kill it for making a thread.
  void for_good();

 private:
  bool here_;  // this process's, not that of a child which shares its memory (vfork)
};

}  // namespace annex::os
