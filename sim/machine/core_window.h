// What the core model keeps of its instruction window, in forms that are quick to work on; what the window models is in
// core.h.
//
// - A queue (reorder buffer, loads, stores) has no entries that come and go: only the times at which its last ones are
//   freed. Whoever takes an entry waits for the one that was taken `size` before.
// - A cycle of dispatch or retirement is divided into as many slots as it takes micro-ops: a micro-op's slot is that of
//   the one before and a fraction of a cycle, which makes a width one addition.
// - The ports are bits: 16 a cycle, four cycles in a word, so that the first free cycle and port is one bit scan. Words
//   go round: those that dispatch has passed become those of kHorizon later.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "machine/types.h"

namespace annex::sim {

struct CoreWindow {
  static constexpr unsigned kMostEntries = 1024;  // of any queue: as the parameters' bounds
  static constexpr unsigned kPorts = 16;
  static constexpr unsigned kWordCycles = 64 / kPorts;
  static constexpr uint64_t kEachCycle = 0x0001000100010001;  // port 0, in each cycle of a word
  static constexpr unsigned kSlotShift = 16;                  // a slot is a time in 1/65536 of a cycle
  static constexpr Cycles kHorizon = 2048;  // cycles whose ports are known, from dispatch on, less a word
  static constexpr size_t kWords = kHorizon / kWordCycles;
  static constexpr Cycles kMostBusy = 256;  // cycles that a port is kept

  // Entries that are freed in the order in which they were taken: when, for the last of them. A power of two of them
  // are kept, of which the youngest `size` matter.
  struct Queue {
    explicit Queue(uint32_t entries)
        : size(std::min(entries, kMostEntries)), mask(std::bit_ceil(std::min(entries, kMostEntries)) - 1) {}
    Cycles free_at() const { return freed[(next - size) & mask]; }  // the entry that the next one takes
    void take(Cycles until) { freed[next++ & mask] = until; }

    uint32_t size;
    uint32_t mask;
    uint32_t next = 0;
    std::array<Cycles, kMostEntries> freed = {};
  };
  // A few cycles: their free ports, the earliest cycle's lowest; and how many micro-ops are issued in them.
  struct Word {
    uint64_t free = ~uint64_t{0};
    uint64_t uops = 0;
  };
  // What every micro-op changes. Runs keep a copy, which compilers can hold in registers.
  struct Pace {
    Cycles dispatch = 0;       // the cycle of the last dispatch
    Cycles dispatch_slot = 0;  // the same, in slots
    Cycles retire_slot = 0;    // of the last retirement
    uint64_t waiting = 0;      // in the scheduler: micro-ops issued after dispatch's own word
    uint32_t entry = 0;        // of the reorder buffer: the next

    Cycles retired() const { return retire_slot >> kSlotShift; }

    Pace() = default;
    Pace(const Pace& from) { *this = from; }
    // One by one: compilers that copy it as a whole keep it in memory.
    Pace& operator=(const Pace& from) {
      dispatch = from.dispatch;
      dispatch_slot = from.dispatch_slot;
      retire_slot = from.retire_slot;
      waiting = from.waiting;
      entry = from.entry;
      return *this;
    }
  };
};

}  // namespace annex::sim
