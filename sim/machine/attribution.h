// Attribution: which misses allocation causes. An observer beside the memory path: it is told of uses, evictions and
// misses, changes nothing in them, and names whose part each miss of a core's own caches was (Blame):
//
//   inside               an access of the allocator's own code (or of the kernel, as it clears a page for it)
//   evicted              one of the program's, to a line whose last eviction here an allocator's access caused
//   touched              one of the program's, to a line that allocator code, of any core, used last
//   evicted_and_touched  both
//   other                neither
//
// The core charges the cycles for which a miss held it up to that part, each cycle once (core.h). The sum of the
// misses' own times, in which those that overlap count several times, is kept here beside it: miss_times. These are
// SpeedMalloc's cache pollution (section 6.2.2: cycles of L2 misses). Simplification: where several cores have a line
// for reading, and the allocator of one uses it, the others' own later hits don't make it the program's again.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/pages.h"
#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

// A set of lines, by page and a bit for each line of it.
class LineSet {
 public:
  bool contains(Address line) const {
    const uint64_t* lines = pages_.find(line >> kShift);
    return lines != nullptr && (*lines & bit(line)) != 0;
  }
  void insert(Address line) { pages_.at(line >> kShift) |= bit(line); }
  // Whether it was in.
  bool erase(Address line) {
    uint64_t* lines = pages_.find(line >> kShift);
    if (lines == nullptr || (*lines & bit(line)) == 0) return false;
    *lines &= ~bit(line);
    return true;
  }
  void clear() { pages_.clear(); }

 private:
  static constexpr unsigned kShift = kPageShift - kLineShift;
  static uint64_t bit(Address line) { return uint64_t{1} << line % 64; }

  AddressMap<uint64_t> pages_;
};

class Attribution {
 public:
  explicit Attribution(unsigned cores) : cores_(cores) {}

  // Code of `origin` uses the line, on any core: told where that may differ from who used it before.
  void used(Address line, Origin origin) {
    if (origin == Origin::kAllocator) {
      touched_.insert(line);
    } else {
      touched_.erase(line);
    }
  }
  Origin user_of(Address line) const { return touched_.contains(line) ? Origin::kAllocator : Origin::kProgram; }

  // An access of `cause` made the core's caches give the line up.
  void evicted(unsigned core, Address line, Origin cause) {
    if (cause == Origin::kAllocator) cores_[core].evicted.insert(line);
  }

  // The core's caches did not have the line; before used(). Prefetches are nobody's part.
  Blame missed(unsigned core, const Request& request) {
    Core& of = cores_[core];
    const bool evicted = of.evicted.erase(request.line);  // as it comes back now
    if (request.prefetch) return Blame::kNone;
    const Blame blame = blame_of(request, evicted);
    ++of.misses[blame];
    return blame;
  }
  // That miss took so many cycles beyond the core's own caches.
  void took(unsigned core, Blame blame, Cycles cycles) { cores_[core].miss_times[blame] += cycles; }

  const BlameCounts& misses(unsigned core) const { return cores_[core].misses; }
  const BlameCounts& miss_times(unsigned core) const { return cores_[core].miss_times; }

  void clear() {
    touched_.clear();
    for (Core& core : cores_) core.evicted.clear();
    reset_statistics();
  }
  void reset_statistics() {
    for (Core& core : cores_) {
      core.misses = {};
      core.miss_times = {};
    }
  }

 private:
  struct Core {
    LineSet evicted;  // not in its caches, and an allocator's access caused that
    BlameCounts misses;
    BlameCounts miss_times;
  };

  Blame blame_of(const Request& request, bool evicted) const {
    if (request.origin == Origin::kAllocator) return Blame::kInside;
    const bool touched = touched_.contains(request.line);
    return evicted && touched ? Blame::kEvictedAndTouched
           : evicted          ? Blame::kEvicted
           : touched          ? Blame::kTouched
                              : Blame::kOther;
  }

  LineSet touched_;  // by allocator code last
  std::vector<Core> cores_;
};

}  // namespace annex::sim
