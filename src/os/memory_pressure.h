// Memory pressure: whether tasks wait for memory, by what the kernel counts of that (PSI, pressure stall information).
//
// Two files tell it, and both are read. That of the process's own cgroup (version 2) tells of a limit that this cgroup
// alone has reached (memory.high, memory.max), which hardly shows in the system's where many CPUs do something else.
// That of the system tells of others that need memory: a process that sleeps waits for none itself.
//
// The kernel can also wake whoever polls for pressure, but that takes a descriptor that stays open.
//
// Synchronization: an object is one thread's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/own_cgroup.h"

namespace annex::os {

// From the text of such a file: how long at least one task has been stalled so far, in microseconds; kNoStall where the
// text does not say so.
inline constexpr uint64_t kNoStall = UINT64_MAX;
uint64_t parse_stalled_us(const char* text);

class MemoryPressure {
 public:
  // Where the files are; others than the system's are for tests.
  struct Paths {
    const char* cgroups = "/proc/self/cgroup";
    const char* cgroup_root = "/sys/fs/cgroup";
    const char* system = "/proc/pressure/memory";
  };
  MemoryPressure() : MemoryPressure(Paths()) {}
  explicit MemoryPressure(const Paths& paths) : paths_(paths) {}

  // Whether, since the last look, tasks were stalled for a tenth of the time: systemd's threshold, 200 ms in 2 s.
  // Always false at the first look, and where the last one is less than half a second ago (this one does not count
  // then) or more than ten. `now_ms`: of any clock. A file that is not there is not tried again: without PSI looks cost
  // nothing.
  bool look(uint64_t now_ms);

 private:
  struct Source {
    uint64_t stalled_us = kNoStall;  // at the last look
    bool gone = false;               // it can't be read, ever

    // How much more there is than at the last look, in microseconds; 0 where one of them is not known.
    uint64_t more_of(const char* path);
  };
  void find_own();

  const Paths paths_;
  char own_path_[kLongestCgroupPath] = "";  // found at the first look
  Source own_;
  Source system_;
  bool looked_ = false;
  uint64_t looked_ms_ = 0;
};

}  // namespace annex::os
