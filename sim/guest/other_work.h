// Work between the allocator's calls, beside the program's own: for experiments on how densely programs may call.
//
// After each call of malloc, free or one of their family its thread runs so many instructions more: as many of them
// read and write memory as of the program's on that core so far, and they reach as far back among its lines as its own
// accesses did (reuse.h), so that what the caches hold of the program matters to them as to it. The others are
// additions in registers, in two chains, so that two end in a cycle.
//
// Simplifications: no access waits for another; a write is one where the core has the line for itself, else a read;
// what the program touched for the first time has the longest distance here; pages that are gone are not touched.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "guest/reuse.h"
#include "guest/split_mix.h"
#include "machine/core.h"
#include "machine/memory_system.h"
#include "machine/parameters.h"
#include "machine/uop.h"

namespace annex::sim {

class OtherWork {
 public:
  OtherWork(const ProgramParameters& parameters, MemorySystem& memory, unsigned cores);

  // Whether it wants to see what the program does.
  bool looks() const { return !profiles_.empty(); }
  // The program ran so many instructions, with these accesses.
  void saw(unsigned core, uint32_t instructions, std::span<const MemoryAccess> accesses);
  // The call is over, and the program goes on at `next`.
  void after_call(Core& core, Address next);

 private:
  static constexpr uint32_t kAtOnce = 64;  // instructions

  // Of what the program does on a core.
  struct Profile {
    explicit Profile(unsigned core) : random(core) {}

    ReuseStack stack;
    ReuseDistances distances;
    uint64_t instructions = 0;
    uint64_t accesses = 0;
    uint64_t stores = 0;
    uint64_t owed = 0;  // accesses, times the program's instructions
    SplitMix random;
  };

  void run(Core& core, uint32_t instructions, Address next);
  bool next_access(Profile& profile, unsigned core, MemoryAccess& access);

  const uint32_t instructions_;  // after each call
  MemorySystem& memory_;
  std::deque<Profile> profiles_;  // by core; none where memory is not touched
};

}  // namespace annex::sim
