// The lock of a process's memory map (Linux's mmap_lock): calls that change the map exclude all others, and those that
// only read it, page faults among them, go side by side.
//
// Models: first come, first served: who asks while a writer waits goes behind it, as in Linux's rwsem. Policies:
//   none        nobody ever waits
//   read-write  page faults read (Linux up to 6.3)
//   per-vma     page faults take a lock of their own region's, which nobody else is taken to want (since 6.4)
// Simplifications: who waits keeps its core, as one that spins; taking the free lock costs nothing, so its line's way
// between the cores that fault at once is not in it.
//
// Requests that come out of time order: busy_period.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "machine/busy_period.h"
#include "machine/types.h"

namespace annex::sim {

struct MmapLockStatistics {
  uint64_t writes = 0;
  uint64_t reads = 0;
  uint64_t faults = 0;
  uint64_t waits = 0;
  Cycles wait_cycles = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("writes", self.writes, "calls that had it alone");
    visit("reads", self.reads, "calls that had it beside others");
    visit("faults", self.faults, "page faults that took it, beside others");
    visit("waits", self.waits, "of all these: that had to wait");
    visit("wait_cycles", self.wait_cycles, "for so long");
  }
};

class MmapLock {
 public:
  explicit MmapLock(std::string_view policy)
      : policy_(policy == "none"      ? Policy::kNone
                : policy == "per-vma" ? Policy::kPerVma
                                      : Policy::kReadWrite) {}

  // Somebody asks for it at a time, and will hold it for so long: when it is theirs. A writer may then keep it for
  // `shared` more cycles beside readers (Linux's downgrade).
  Cycles write(Cycles at, Cycles hold, Cycles shared = 0) {
    ++statistics.writes;
    if (policy_ == Policy::kNone) return at;
    const Cycles start = std::max(writers_.start(at), readers_.start(at));
    writers_.cover(at, start + hold);
    if (shared > 0) readers_.cover(at, start + hold + shared);
    return waited(at, start);
  }
  Cycles read(Cycles at, Cycles hold) {
    ++statistics.reads;
    return policy_ == Policy::kNone ? at : share(at, hold);
  }
  // Of a page fault.
  Cycles fault(Cycles at, Cycles hold) {
    if (policy_ != Policy::kReadWrite) return at;
    ++statistics.faults;
    return share(at, hold);
  }

  MmapLockStatistics statistics;

 private:
  enum class Policy : uint8_t { kNone, kReadWrite, kPerVma };

  Cycles share(Cycles at, Cycles hold) {
    const Cycles start = writers_.start(at);
    readers_.cover(at, start + hold);
    return waited(at, start);
  }
  Cycles waited(Cycles at, Cycles start) {
    statistics.waits += start > at;
    statistics.wait_cycles += start - at;
    return start;
  }

  Policy policy_;
  BusyPeriod writers_;
  BusyPeriod readers_;
};

}  // namespace annex::sim
