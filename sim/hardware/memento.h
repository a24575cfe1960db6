// Memento+ (SpeedMalloc 6.1.3): Memento's object allocator (Wang et al., MICRO 2023) at each core, with a transfer
// cache between the cores. It serves malloc, calloc, realloc and free of blocks of up to 512 bytes without software.
//
//   main core                     its object allocator (object_allocator.h)    transfer cache (transfer_cache.h)
//   obj-alloc, at its issue  -->  has an object of the class: `hit` cycles
//                                 has none                           <-------- a batch, or a new arena's objects
//   obj-free, at its issue   -->  has room; the core goes on at once
//                                 has none                           --------> a batch
//
// An unmodified allocator stands behind it: it runs each call functionally, which gives the program its addresses and
// pages, and its code is charged to nobody. Blocks that the unit has given out are known by their addresses; who frees
// one does not matter. Calls of larger blocks, of aligned ones, and frees of blocks that are not the unit's are the
// allocator's own code at the core that made them. A realloc within a class takes one look; to another class it takes
// an object, gives one back, and leaves the copying to the core; beyond 512 bytes the allocator's code runs, and the
// object is given back beside it.
//
// `page_allocator = "yes"` is Memento's hardware page allocator, as a credit: a page of 4 KiB of which a block is given
// out, and that nobody has touched yet, is there after `page` cycles, without a page fault; its lines are cleared ones,
// in the core's caches, as the kernel's clearing leaves them, in no time. Without it pages are faulted in at their
// first touch, as ever.
//
// Simplifications: the pool of pages never runs out; pages do not go back to it but by the allocator's own madvise and
// munmap, whose time is the allocator's, and so nobody's in a call that is served. What waits for a unit's exchange
// waits at the core, before the instruction retires. Parameters: MementoParameters.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <unordered_map>

#include "hardware/object_allocator.h"
#include "hardware/transfer_cache.h"
#include "hardware/unit.h"
#include "hardware/unit_memory.h"
#include "machine/parameters.h"

namespace annex::sim {

struct MementoStatistics {
  uint64_t asked = 0;
  uint64_t resized = 0;
  uint64_t software = 0;
  uint64_t waited = 0;
  uint64_t pages = 0;
  uint64_t lost = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("asked", self.asked, "calls served");
    visit("resized", self.resized, "of them, reallocs within a class");
    visit("software", self.software, "calls left to the allocator's own code");
    visit("waited", self.waited, "calls that had to wait in the kernel, and ran at their cores");
    visit("pages", self.pages, "of blocks, that came from the page allocator");
    visit("lost", self.lost, "objects whose address was given out again without a free that was seen");
  }
};

class Memento final : public Unit {
 public:
  Memento(const MementoParameters& parameters, unsigned cores, MemorySystem& memory);

  const char* name() const override { return "memento"; }
  bool serves(const Call::Facts& facts) const override;
  void ran_at_its_core(const Core& core, const Call::Facts& facts) override;

  uint64_t ask(Core& main, Service service, Address entry, Call call) override;
  std::optional<Cycles> answer(uint64_t number) override;
  void have_answer(Core& main, Cycles when) override;

  void advance(Cycles) override {}  // all is decided when it is asked
  Cycles decides_next() const override { return kNoTime; }

  void describe(nlohmann::json& out) const override;

 private:
  // From 0; malloc(0) has an object, too.
  static unsigned class_of(uint64_t bytes) { return static_cast<unsigned>((bytes + (bytes == 0) + 7) / 8 - 1); }

  // When the call has its block. `old`: the class of the one that it gives back.
  Cycles allocate(ObjectAllocator& own, unsigned core, const Call::Facts& facts, Cycles at,
                  std::optional<unsigned> old);
  // The class of a block that it has given out, which it takes back.
  std::optional<unsigned> take_back(Address block);

  const uint64_t largest_;
  const Cycles page_;
  UnitMemory memory_;
  TransferCache transfer_;
  std::deque<ObjectAllocator> allocators_;      // by core
  std::unordered_map<Address, unsigned> live_;  // the class of each block that is given out
  std::unordered_map<uint64_t, Cycles> answers_;
  uint64_t number_ = 0;
  MementoStatistics statistics_;
};

}  // namespace annex::sim
