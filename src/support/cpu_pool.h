// The process's CPUs, of which each support thread takes one and puts it back: never two of them on one core, never the
// core of the program thread that started it, and none where the program needs every CPU.
//
// Synchronization: filled once, before the first support thread; then any thread may call.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/cpu_set.h"
#include "os/fork.h"
#include "os/lock.h"

namespace annex::support {

class CpuPool {
 public:
  // Reads which CPUs the process may use at this moment.
  void fill();
  const os::CpuSet& allowed() const { return allowed_; }
  // How many CPUs' worth of time there is: a cgroup's quota may be less than its CPUs.
  uint32_t usable() const { return usable_; }

  // Binds the calling thread to one of `from`: that one, or an empty set where none can be had.
  os::CpuSet take(const os::CpuSet& from, uint32_t program_cpu);
  // Whether there is one to take.
  bool has_one(const os::CpuSet& from, uint32_t program_cpu);
  // The calling thread may run anywhere again.
  void put_back(const os::CpuSet& cpu);

  // CPUs that are needed: one for each awake support thread, and for each program thread that allocates.
  void need(uint32_t more) { needed_.fetch_add(more, std::memory_order_relaxed); }
  void need_no_more(uint32_t fewer) { needed_.fetch_sub(fewer, std::memory_order_relaxed); }
  bool crowded() const { return needed_.load(std::memory_order_relaxed) > usable_; }

  // Around fork; and in the child, which has no support threads.
  void hold_lock_for_fork() { os::fork.hold(lock_); }
  void forget_after_fork();

 private:
  os::CpuSet candidates(const os::CpuSet& from, uint32_t program_cpu) const;

  os::Lock lock_;  // of taken_
  os::CpuSet taken_;
  os::CpuSet allowed_;
  uint32_t usable_ = 0;
  alignas(64) std::atomic<uint32_t> needed_{0};
};

extern constinit CpuPool cpu_pool;

}  // namespace annex::support
