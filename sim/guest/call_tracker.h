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

// Calls by their length, and the time in them: each length by itself below 128 cycles, where fast paths are and a cycle
// matters; eight steps for every power of two beyond.
class CallLengths {
 public:
  struct Bin {
    uint64_t calls = 0;
    Cycles cycles = 0;
  };

  void add(Cycles took) {
    Bin& bin = bins_[index_of(took)];
    ++bin.calls;
    bin.cycles += took;
  }
  // visit(the first length beyond the bin, the bin), of those with calls.
  template <class Visit>
  void each(Visit&& visit) const {
    for (size_t i = 0; i < bins_.size(); ++i) {
      if (bins_[i].calls > 0) visit(beyond(i), bins_[i]);
    }
  }
  // In calls of less than a length that has a bin of its own.
  Cycles cycles_below(Cycles length) const {
    Cycles sum = 0;
    for (size_t i = 0; i < index_of(length); ++i) sum += bins_[i].cycles;
    return sum;
  }
  // Calls of [2^(i-1), 2^i) cycles.
  auto by_powers() const {
    std::array<uint64_t, kMostBits + 1> calls{};
    each([&](Cycles beyond, const Bin& bin) { calls[static_cast<size_t>(std::bit_width(beyond - 1))] += bin.calls; });
    return calls;
  }

 private:
  static constexpr size_t kExact = 128;
  static constexpr int kSteps = 8;
  static constexpr int kFirstBits = 8;  // of 128
  static constexpr int kMostBits = 40;  // five minutes

  static constexpr size_t index_of(Cycles took) {
    if (took < kExact) return static_cast<size_t>(took);
    const int bits = static_cast<int>(std::bit_width(took));
    if (bits > kMostBits) return kBins - 1;
    return kExact + static_cast<size_t>((bits - kFirstBits) * kSteps) + ((took >> (bits - 4)) & (kSteps - 1));
  }
  static constexpr Cycles beyond(size_t index) {
    if (index < kExact) return index + 1;
    const size_t step = (index - kExact) % kSteps;
    return Cycles{kSteps + step + 1} << ((index - kExact) / kSteps + kFirstBits - 4);
  }

  static constexpr size_t kBins = kExact + (kMostBits - kFirstBits + 1) * kSteps;
  std::array<Bin, kBins> bins_{};
};

// How long the calls of one function took, in cycles.
struct CallStatistics {
  uint64_t calls = 0;
  uint64_t instructions = 0;
  Cycles cycles = 0;
  Cycles kernel_cycles = 0;  // of them, in page faults and system calls
  CallLengths lengths;       // without the kernel's (Mallacc figures 1, 2, 15, 16)
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
    ++s.calls;
    s.instructions += instructions - instructions_;
    s.cycles += all;
    s.kernel_cycles += in_kernel;
    s.lengths.add(all - in_kernel);
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
