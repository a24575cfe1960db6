// The registers of a thread, which the plugin has at a block's start; and whether they lie where it takes them to be,
// asked once, at the program's first block.
//
// rax, rcx, rdx, rbx, rsp, ... in QEMU's numbering, 16 of them, then the instruction pointer. At the program's entry
// the latter is that of the block, and the stack holds the number of arguments, as many pointers, and a null (System V
// ABI).
#pragma once

#include <array>

#include "guest/guest_memory.h"
#include "machine/types.h"

namespace annex::sim {

enum class GuestRegister : size_t { kRax = 0, kRdx = 2, kRsp = 4, kRsi = 6, kRdi = 7, kThreadPointer = 36 };
using GuestRegisters = uint64_t*;
inline uint64_t& at(GuestRegisters registers, GuestRegister which) { return registers[static_cast<size_t>(which)]; }

inline bool are_registers_of_entry(Address registers, Address block_start) {
  const auto all = read_guest<std::array<uint64_t, 17>>(registers);
  if (!all || all->back() != block_start) return false;
  const Address stack = (*all)[static_cast<size_t>(GuestRegister::kRsp)];
  const auto count = read_guest<uint64_t>(stack);
  return stack % 16 == 0 && count && *count > 0 && read_guest<uint64_t>(stack + 8 * (*count + 1)) == 0;
}

}  // namespace annex::sim
