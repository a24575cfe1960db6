// The object allocator at one core (Memento; SpeedMalloc 6.1.3 and 6.2.1): objects of 64 size classes of 8 bytes, of
// each of which it keeps some.
//
//   an object is asked for    there is one: a hit, and it is had after `hit` cycles
//                             else a batch comes from the transfer cache (transfer_cache.h); where that has none,
//                             from the core's own arena of the class: a write to its header's line
//   an object is given back   there is room: a hit
//                             else a batch goes to the transfer cache
//
// It does one exchange at a time, and nothing else meanwhile; a hit delays nothing behind it. Giving back keeps nobody
// waiting but who asks during the exchange. What it keeps is no cache's line: only exchanges and headers are seen by
// the core's caches.
//
// An arena is a range of objects of one class, with a line of header (Memento's bitmap). The headers of a core's arenas
// are synthetic lines, side by side; where the objects are is the business of the program's allocator, whose addresses
// calls return. Objects are counted, not told apart. Parameters: MementoParameters.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/transfer_cache.h"
#include "hardware/unit_memory.h"
#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

struct ObjectStatistics {
  uint64_t mallocs = 0;
  uint64_t malloc_hits = 0;
  uint64_t frees = 0;
  uint64_t free_hits = 0;
  uint64_t batches_taken = 0;
  uint64_t batches_made = 0;
  uint64_t batches_put = 0;
  uint64_t objects_taken = 0;
  uint64_t objects_made = 0;
  uint64_t objects_put = 0;
  uint64_t arenas = 0;
  Cycles fetching = 0;
  Cycles putting = 0;
  Cycles busy = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("mallocs", self.mallocs, "objects that were asked for");
    visit("malloc_hits", self.malloc_hits, "of them, that the core had");
    visit("frees", self.frees, "objects that were given back");
    visit("free_hits", self.free_hits, "of them, for which the core had room");
    visit("batches_taken", self.batches_taken, "that came from the transfer cache");
    visit("batches_made", self.batches_made, "that came from an arena");
    visit("batches_put", self.batches_put, "that went to the transfer cache");
    visit("objects_taken", self.objects_taken, "of the former");
    visit("objects_made", self.objects_made, "of those from arenas");
    visit("objects_put", self.objects_put, "of the latter");
    visit("arenas", self.arenas, "that were begun");
    visit("fetching", self.fetching, "cycles from a miss to its objects");
    visit("putting", self.putting, "cycles that batches took to the transfer cache");
    visit("busy", self.busy, "cycles that calls waited for an exchange before them");
  }
};

class ObjectAllocator {
 public:
  ObjectAllocator(const MementoParameters& parameters, unsigned core, UnitMemory memory, TransferCache& transfer);

  // When a call of the core's that comes at that time is taken up.
  Cycles taken_up(Cycles at);
  // One that only asks what it has.
  Cycles look(Cycles at) const { return at + hit_; }
  // One that is taken up then has its object when?
  Cycles allocate(unsigned size_class, Cycles at);
  void free(unsigned size_class, Cycles at);

  uint64_t kept() const;  // objects of all classes
  const ObjectStatistics& statistics() const { return statistics_; }

 private:
  struct Arena {
    Address header = 0;
    uint32_t left = 0;  // objects that were never used
  };
  Cycles fetch(unsigned size_class, Cycles at);
  TransferCache::Batch make(unsigned size_class, Cycles at);

  const uint32_t objects_, batch_, arena_;
  const Cycles hit_;
  const unsigned core_;
  UnitMemory memory_;
  TransferCache& transfer_;
  std::vector<uint32_t> kept_;  // by class
  std::vector<Arena> arenas_;   // the one in use, by class
  Cycles exchanges_until_ = 0;
  ObjectStatistics statistics_;
};

}  // namespace annex::sim
