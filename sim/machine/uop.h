// Static micro-operations: what the timing model knows of an instruction, decoded once when its block is translated.
//
// An instruction becomes up to three: a load (address registers -> data), an operation, a store (address and data ->).
// Decoders (decode/) make them; the core model (core.h) runs them. Nothing here is particular to x86.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

enum class UopClass : uint8_t {
  kNop,  // takes a slot and no port
  kAlu,  // integer add, logic, compare, move, address
  kShift,
  kMul,
  kDiv,
  kBranch,
  kLoad,
  kStore,
  kVectorAlu,  // integer and logical vector operations, shuffles, moves between register files
  kFpAdd,
  kFpMul,      // and fused multiply-add
  kFpDiv,      // and square root
  kMicrocode,  // whatever the core does in a sequence of its own (cpuid, string set-up, x87 transcendental)
  kFence,
  kPause,
};
inline constexpr size_t kUopClasses = static_cast<size_t>(UopClass::kPause) + 1;
const char* name_of(UopClass kind);

// A register by number: 0 is none. Flags are one register; so is the x87 stack. kLoaded and kResult carry values
// between the micro-ops of one instruction.
using Register = uint8_t;
inline constexpr Register kNoRegister = 0;
inline constexpr Register kFirstInteger = 1;  // 16 or 31 of them
// Of x86-64 calls: their result, stack and first argument; and one that they may change.
inline constexpr Register kRax = kFirstInteger;
inline constexpr Register kRsp = kFirstInteger + 4;
inline constexpr Register kRdi = kFirstInteger + 7;
inline constexpr Register kR11 = kFirstInteger + 11;
inline constexpr Register kFlags = 33;
inline constexpr Register kFirstVector = 34;  // 32 of them
inline constexpr Register kX87 = 66;
inline constexpr Register kLoaded = 67;
inline constexpr Register kResult = 68;
inline constexpr Register kMallocList = 69;  // hidden: orders a malloc cache's list instructions (Mallacc 4.1)
inline constexpr Register kRegisters = 70;
inline constexpr Register kNowhere = kRegisters;  // of a destination that is not there: nobody reads it

// The registers that a micro-op writes. Apart from sources, so that a write to none needs no test and no repair.
class Destinations {
 public:
  static constexpr size_t kMost = 2;

  constexpr Destinations() = default;
  constexpr Destinations(Register first, Register second = kNoRegister) {
    set(0, first);
    set(1, second);
  }
  constexpr void set(size_t place, Register to) { registers_[place] = to == kNoRegister ? kNowhere : to; }
  constexpr Register operator[](size_t place) const { return registers_[place]; }
  constexpr const Register* begin() const { return registers_; }
  constexpr const Register* end() const { return registers_ + kMost; }

 private:
  Register registers_[kMost] = {kNowhere, kNowhere};
};

struct Uop {
  UopClass kind = UopClass::kNop;
  bool first = false;   // of its instruction
  bool fused = false;   // shares the dispatch slot of the one before it (a load with its operation, address with data)
  bool locked = false;  // part of an atomic read-modify-write
  bool prefetch = false;     // of the kind kNop: a software prefetch, whose sources are its address
  uint8_t addresses = 0;     // how many sources, from the first on, are a store's address
  uint16_t instruction = 0;  // its number in the block
  Register sources[4] = {};
  Destinations destinations = {};
};

constexpr bool takes_slot(const Uop& uop) { return !uop.fused; }

// How a block ends.
enum class BlockEnd : uint8_t {
  kFallThrough,  // the translator ended it: it goes on at the next address
  kConditional,
  kJump,
  kIndirectJump,
  kCall,
  kIndirectCall,
  kReturn,
  kSystemCall,
  kOther,
};

// What allocators' sources say to a hardware unit, at a block's start (decode/markers.h): which marker it is, 0 for
// none, and the registers with its two values.
struct Marker {
  uint8_t kind = 0;
  Register first = kNoRegister;
  Register second = kNoRegister;
};

// A straight run of instructions, entered at its start and left at its end.
struct Block {
  Address start = 0;
  Address last = 0;          // address of the last instruction
  Address fall_through = 0;  // address after the last instruction
  BlockEnd end = BlockEnd::kFallThrough;
  uint32_t instructions = 0;
  uint32_t slots = 0;       // that its micro-ops take at decode and dispatch
  uint32_t prefetches = 0;  // by software
  bool atomic = false;      // contains a locked instruction
  Marker marker = {};       // with which it begins
  std::vector<Uop> uops;
};

// One access to memory that a block's run made. Those of an instruction that touch neighbouring bytes are one.
struct MemoryAccess {
  Address address = 0;
  uint16_t instruction = 0;
  uint8_t bytes = 0;
  bool store = false;
  bool prefetch = false;  // by software; a store's: to write
};

}  // namespace annex::sim
