// A hardware unit's own data in memory, as a core's unit reaches it: through that core's translation and caches, in
// coherence with the others', as accesses of the allocator's. Its pages are resident from their first access on, with a
// page fault or, where hardware has pages of its own, without.
#pragma once

#include <cstdint>

#include "machine/memory_system.h"
#include "machine/types.h"

namespace annex::sim {

class UnitMemory {
 public:
  // `backed`: by hardware.
  UnitMemory(MemorySystem& memory, bool backed) : memory_(&memory), backed_(backed) {}

  bool backed() const { return backed_; }
  // Addresses beyond kUnitMemory that are to be used.
  void map(Address from, Address to) { memory_->pages().map(from, to, PageKind::kAnonymous); }

  // When it is done.
  Cycles load(unsigned core, Address address, Cycles at) {
    if (backed_) back(core, address, at);
    return memory_->load(core, address, at, Origin::kAllocator).ready;
  }
  Cycles store(unsigned core, Address address, Cycles at) {
    if (backed_) back(core, address, at);
    return memory_->store(core, address, at, Origin::kAllocator).ready;
  }
  // The line is the core's own then.
  Cycles lock(unsigned core, Address address, Cycles at) {
    if (backed_) back(core, address, at);
    return memory_->lock(core, address, at, 0, Origin::kAllocator).ready;
  }
  // Whether hardware had to give the page of an address its memory.
  bool back(unsigned core, Address address, Cycles at) { return memory_->back(core, address, at, Origin::kAllocator); }

 private:
  MemorySystem* memory_;
  bool backed_;
};

}  // namespace annex::sim
