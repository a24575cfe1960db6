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

  void add(const Block& block, std::span<const MemoryAccess> accesses, Address next) {
    steps_.push_back({.block = &block, .next = next, .accesses = static_cast<uint32_t>(accesses.size())});
    accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
    instructions_ += block.instructions;
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
  // Takes the steps of which that holds out, into another call.
  template <class Wanted>
  Call split(Wanted&& wanted) {
    Call kept;
    Call taken;
    each([&](const Step& step, std::span<const MemoryAccess> accesses) {
      Call& to = wanted(step, accesses) ? taken : kept;
      to.add(*step.block, accesses, step.next);
      to.add_kernel(step.kernel);
    });
    *this = std::move(kept);
    return taken;
  }

  bool empty() const { return steps_.empty(); }
  size_t steps() const { return steps_.size(); }
  size_t accesses() const { return accesses_.size(); }
  uint64_t instructions() const { return instructions_; }

 private:
  std::vector<Step> steps_;
  std::vector<MemoryAccess> accesses_;
  uint64_t instructions_ = 0;
};

}  // namespace annex::sim
