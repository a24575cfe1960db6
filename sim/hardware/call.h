// A call of the allocator, as the program's thread ran it: what a hardware unit runs again in a time of its own.
//
// It is captured while no time passes: the blocks in their order, each with its accesses and the address at which the
// program went on, and what the kernel took between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "machine/core.h"
#include "machine/types.h"
#include "machine/uop.h"

namespace annex::sim {

class Call {
 public:
  struct Step {
    const Block* block;
    Address next;
    uint32_t accesses;  // how many, of those that follow the steps before
    Cycles kernel = 0;  // that pass after it
  };

  // What it asked for and what it got, by its arguments and its result.
  struct Facts {
    bool plain = false;      // malloc, calloc, realloc or free: no alignment is asked for
    bool allocates = false;  // it has a result
    uint64_t bytes = 0;      // that it asked for
    Address result = 0;      // the block that it got; 0: none
    Address freed = 0;       // the block that it gave back, of realloc the old one; 0: none
  };
  Facts facts;

  void add(const Block& block, std::span<const MemoryAccess> accesses, Address next) {
    steps_.push_back({.block = &block, .next = next, .accesses = static_cast<uint32_t>(accesses.size())});
    accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  }
  void add_kernel(Cycles cycles) {
    if (!steps_.empty()) steps_.back().kernel += cycles;
  }

  // Each step once, in order, with its accesses.
  template <class Visit>
  void each(Visit&& visit) const {
    const MemoryAccess* access = accesses_.data();
    for (const Step& step : steps_) {
      visit(step, std::span<const MemoryAccess>(access, step.accesses));
      access += step.accesses;
    }
  }
  // All of it, on a core.
  void run(Core& core) const {
    each([&](const Step& step, std::span<const MemoryAccess> accesses) { run(core, *step.block, step, accesses); });
  }
  // A step, of which another block may stand for its own.
  static void run(Core& core, const Block& block, const Step& step, std::span<const MemoryAccess> accesses) {
    core.run(block, accesses, step.next, Origin::kAllocator);
    if (step.kernel > 0) core.spend(step.kernel, Cause::kSystemCall);
  }
  // Takes the steps of which that holds out, into another call.
  template <class Wanted>
  Call split(Wanted&& wanted) {
    Call kept;
    kept.facts = facts;
    Call taken;
    each([&](const Step& step, std::span<const MemoryAccess> accesses) {
      Call& to = wanted(step, accesses) ? taken : kept;
      to.add(*step.block, accesses, step.next);
      to.add_kernel(step.kernel);
    });
    *this = std::move(kept);
    return taken;
  }

  size_t steps() const { return steps_.size(); }

 private:
  std::vector<Step> steps_;
  std::vector<MemoryAccess> accesses_;
};

}  // namespace annex::sim
