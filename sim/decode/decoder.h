// Machine code to micro-operations: what a translator of guest code hands over once per block, and what the core model
// then runs many times.
//
// One interface for all instruction sets; a decoder for each in its own file (x86.cpp; AArch64 may follow).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "machine/types.h"
#include "machine/uop.h"

namespace annex::sim {

struct Instruction {
  Address address = 0;
  std::span<const uint8_t> bytes;  // all of it, and nothing after it
  bool begins_marker = false;      // a jump to a marker, right after it (markers.h)
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  // The block that these instructions are, in program order; at least one. Never fails: what it doesn't know becomes
  // one plain operation, and memory accesses that an instruction then turns out to make get micro-ops at run time.
  virtual Block decode(std::span<const Instruction> instructions) = 0;
};

// x86-64; null when the disassembler cannot be opened. Not to be shared between threads.
std::unique_ptr<Decoder> make_x86_decoder();

}  // namespace annex::sim
