// What object allocators of several cores share: for each size class a stack of objects in memory, under a lock
// (SpeedMalloc 6.1.3: Memento+ has the transfer cache of TCMalloc).
//
// A class has a line for its lock and its count, and behind it pointers, eight a line. Who takes or gives a batch locks
// the first line, then reads or writes the lines that the batch's pointers are in, side by side, and is done with the
// last of them; who comes meanwhile waits until then. All of it goes through the core's own caches and the coherence
// between them, as accesses of the allocator's.
//
// Parameters: none of its own. Simplifications: it takes whatever comes, so that nothing goes back to an arena; from
// 2^17 objects of a class on its lines are used again.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/unit_memory.h"
#include "machine/types.h"

namespace annex::sim {

struct TransferStatistics {
  uint64_t locked = 0;  // times that a class was
  uint64_t waits = 0;   // of them, for another core
  Cycles waited = 0;
  Cycles held = 0;  // from a lock's being had to the batch's being there

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("locked", self.locked, "times that a class of the transfer cache was locked");
    visit("waits", self.waits, "of them, behind another core");
    visit("waited", self.waited, "cycles that these waited");
    visit("held", self.held, "cycles that locks were held");
  }
};

class TransferCache {
 public:
  TransferCache(unsigned classes, UnitMemory memory);

  struct Batch {
    uint32_t objects;
    Cycles done;
  };
  // A core asks at that time: as many as there are, up to `most`; none: it is known to be empty then.
  Batch take(unsigned core, unsigned size_class, uint32_t most, Cycles at);
  // When the core is rid of them.
  Cycles put(unsigned core, unsigned size_class, uint32_t objects, Cycles at);

  uint64_t objects() const;  // of all classes
  const TransferStatistics& statistics() const { return statistics_; }

 private:
  struct Stack {
    uint64_t objects = 0;
    Cycles asked = 0;  // by the last that locked it
    Cycles released = 0;
  };
  // When the core has the lock.
  Cycles lock(unsigned core, unsigned size_class, Cycles at);
  // The lines of those pointers.
  Cycles move(unsigned core, unsigned size_class, uint64_t first, uint32_t objects, bool store, Cycles at);

  UnitMemory memory_;
  std::vector<Stack> stacks_;
  TransferStatistics statistics_;
};

}  // namespace annex::sim
