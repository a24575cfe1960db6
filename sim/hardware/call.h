// A call of the allocator, as the program's thread ran it: what a hardware unit runs again in a time of its own.
//
// It is captured while no time passes: the blocks in their order, each with its accesses and the address at which the
// program went on, what a unit inside the core did between them, and what the kernel took.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "machine/core.h"
#include "machine/types.h"
#include "machine/uop.h"

namespace annex::sim {

class Call {
 public:
  struct Step {
    const Block* block;  // null: a unit's instructions, which are the next of them
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
  // Instructions of a unit inside the core, which run on the core that is given.
  using Inside = std::function<void(Core&)>;
  void add(Inside instructions) {
    steps_.push_back({.block = nullptr, .next = 0, .accesses = 0});
    inside_.push_back(std::move(instructions));
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
    run_each(core, [](const Step& step) { return step.block; });
  }
  // The same, with blocks that stand for the steps' own: block_of(step). How many steps were run.
  template <class BlockOf>
  size_t run_each(Core& core, BlockOf&& block_of) const {
    size_t ran = 0;
    const Inside* inside = inside_.data();
    each([&](const Step& step, std::span<const MemoryAccess> accesses) {
      if (step.block == nullptr) {
        (*inside++)(core);
      } else {
        core.run(*block_of(step), accesses, step.next, Origin::kAllocator);
      }
      if (step.kernel > 0) core.spend(step.kernel, Cause::kSystemCall);
      ++ran;
    });
    return ran;
  }
  // Takes the steps of which that holds out, into another call; a unit's instructions stay.
  template <class Wanted>
  Call split(Wanted&& wanted) {
    Call kept;
    kept.facts = facts;
    Call taken;
    auto inside = inside_.begin();
    each([&](const Step& step, std::span<const MemoryAccess> accesses) {
      Call& to = step.block != nullptr && wanted(step, accesses) ? taken : kept;
      if (step.block == nullptr) {
        to.add(*inside++);
      } else {
        to.add(*step.block, accesses, step.next);
      }
      to.add_kernel(step.kernel);
    });
    *this = std::move(kept);
    return taken;
  }

  size_t steps() const { return steps_.size(); }
  size_t blocks() const { return steps_.size() - inside_.size(); }

 private:
  std::vector<Step> steps_;
  std::vector<MemoryAccess> accesses_;
  std::vector<Inside> inside_;
};

}  // namespace annex::sim
