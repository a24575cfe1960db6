// When a thread is inside the allocator: from the entry of malloc, free or one of their family to its return.
//
// The return is known by its place: it is the first `ret` that takes its address from the stack slot that the call of
// the family's function filled, or from above it (longjmp, exceptions). Where a function is entered by a jump (a stub,
// a tail call) that slot is the innermost one still open, so the slots of all open calls are kept.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "guest/functions.h"
#include "machine/types.h"

namespace annex::sim {

// How long the calls of one function took, in cycles.
struct CallStatistics {
  uint64_t calls = 0;
  uint64_t instructions = 0;
  Cycles cycles = 0;
  Cycles kernel_cycles = 0;              // of them, in page faults and system calls
  Cycles cycles_in_short = 0;            // of calls below 100 cycles, without the kernel's (Mallacc figure 1)
  std::array<uint64_t, 40> by_cycles{};  // calls of [2^(i-1), 2^i) cycles, without the kernel's
};

class CallTracker {
 public:
  void call(Address slot) { open_.push_back(slot); }

  // True where the allocator has been left with it.
  bool returned(Address slot) {
    while (!open_.empty() && open_.back() <= slot) open_.pop_back();
    return function_ != Function::kNone && slot >= slot_;
  }

  // The return address's slot of the call that is under way; 0: not known.
  Address slot() const { return slot_; }
  bool inside() const { return function_ != Function::kNone; }

  // `kernel`: cycles that the thread's core has spent in the kernel so far.
  void enter(Function function, Cycles now, Cycles kernel, uint64_t instructions) {
    function_ = function;
    slot_ = open_.empty() ? 0 : open_.back();
    since_ = now;
    kernel_ = kernel;
    instructions_ = instructions;
  }

  void leave(Cycles now, Cycles kernel, uint64_t instructions,
             std::array<CallStatistics, kCountedFunctions>& statistics) {
    CallStatistics& s = statistics[counted_as(function_)];
    function_ = Function::kNone;
    // On another core than before the kernel's part is unknown: then it was not small, and all of it is the kernel's.
    const Cycles all = now - since_;
    const Cycles in_kernel = kernel - kernel_ <= all ? kernel - kernel_ : all;
    const Cycles took = all - in_kernel;
    ++s.calls;
    s.instructions += instructions - instructions_;
    s.cycles += all;
    s.kernel_cycles += in_kernel;
    if (took < 100) s.cycles_in_short += took;
    ++s.by_cycles[static_cast<size_t>(std::bit_width(took))];
  }

 private:
  std::vector<Address> open_;
  Function function_ = Function::kNone;
  Address slot_ = 0;
  Cycles since_ = 0;
  Cycles kernel_ = 0;
  uint64_t instructions_ = 0;
};

}  // namespace annex::sim
