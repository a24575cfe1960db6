// What a core counts. Plain numbers: one host thread at a time runs the model.
//
// A group's each(self, visit) calls visit(name, member, what it is) for each number, as the parameters' does.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

struct ExecutionStatistics {
  uint64_t instructions = 0;
  uint64_t uops = 0;
  uint64_t loads = 0;
  uint64_t stores = 0;
  uint64_t forwarded = 0;
  uint64_t blocked = 0;
  uint64_t order_violations = 0;
  uint64_t software_prefetches = 0;
  uint64_t prefetches_dropped = 0;
  uint64_t branches = 0;
  uint64_t mispredictions = 0;
  uint64_t indirects = 0;
  uint64_t indirect_mispredictions = 0;
  uint64_t returns = 0;
  uint64_t return_mispredictions = 0;
  uint64_t atomics = 0;
  uint64_t atomic_cycles = 0;
  uint64_t fences = 0;
  uint64_t page_faults = 0;
  uint64_t extra_accesses = 0;
  std::array<uint64_t, kCauses> cycles = {};  // by Cause
  BlameCounts miss_stalls;                    // of these

  uint64_t all_cycles() const { return std::accumulate(cycles.begin(), cycles.end(), uint64_t{0}); }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("instructions", self.instructions, "retired; a string instruction's iterations within 32 bytes are one");
    visit("uops", self.uops, "micro-ops retired");
    visit("loads", self.loads, "accesses to memory that read");
    visit("stores", self.stores, "accesses to memory that write, without those of locked instructions");
    visit("forwarded", self.forwarded, "loads that got their data from the store queue");
    visit("blocked", self.blocked, "loads that waited until a store was written that had some of their bytes");
    visit("order_violations", self.order_violations,
          "loads done again, with all after them, as an older store turned out to be to their bytes");
    visit("software_prefetches", self.software_prefetches, "prefetch instructions");
    visit("prefetches_dropped", self.prefetches_dropped, "of them, whose page was not there");
    visit("branches", self.branches, "conditional branches");
    visit("mispredictions", self.mispredictions, "of their direction");
    visit("indirects", self.indirects, "indirect jumps and calls");
    visit("indirect_mispredictions", self.indirect_mispredictions, "of their target");
    visit("returns", self.returns, "returns from calls");
    visit("return_mispredictions", self.return_mispredictions, "of their target");
    visit("atomics", self.atomics, "locked instructions");
    visit("atomic_cycles", self.atomic_cycles, "cycles from all before them retired to their end, also for the line");
    visit("fences", self.fences, "full fences");
    visit("page_faults", self.page_faults, "first touches of pages");
    visit("extra_accesses", self.extra_accesses, "accesses for which the decoder made no micro-op");
    for (size_t i = 0; i < kCauses; ++i) {
      const std::string cause = name_of(static_cast<Cause>(i));
      visit("cycles." + cause, self.cycles[i], "cycles charged to what held up the oldest instruction");
    }
    BlameCounts::each(self.miss_stalls, [&](const std::string& blame, auto& member, const char*) {
      visit("miss_stalls." + blame, member, "of these: to misses of the L2, by whose part they were");
    });
  }
};

struct CoreStatistics {
  std::array<ExecutionStatistics, 2> by_origin = {};  // by Origin

  ExecutionStatistics& of(Origin origin) { return by_origin[static_cast<size_t>(origin)]; }
  const ExecutionStatistics& of(Origin origin) const { return by_origin[static_cast<size_t>(origin)]; }

  uint64_t cycles(Cause cause) const {
    const auto i = static_cast<size_t>(cause);
    return by_origin[0].cycles[i] + by_origin[1].cycles[i];
  }
  // Of all causes: exactly the core's now().
  uint64_t cycles() const { return by_origin[0].all_cycles() + by_origin[1].all_cycles(); }

  // Its groups: visit(name, group, what it is).
  template <class Self, class Visit>
  static void each_group(Self& self, Visit&& visit) {
    visit("program", self.by_origin[0], "outside the allocator");
    visit("allocator", self.by_origin[1], "between entry and return of malloc, free and their family");
  }
  // Every number of both groups, its name prefixed with the group's.
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    each_group(self, [&](const std::string& group, auto& numbers, const char*) {
      ExecutionStatistics::each(numbers, [&](const std::string& name, auto& member, const char* what) {
        visit(group + "." + name, member, what);
      });
    });
  }
};

}  // namespace annex::sim
