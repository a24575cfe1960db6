// Whether the registers of a thread lie where the plugin takes them to be, asked once, at the program's first block.
//
// rax, rcx, rdx, rbx, rsp, ... in QEMU's numbering, 16 of them, then the instruction pointer. At the program's entry
// the latter is that of the block, and the stack holds the number of arguments, as many pointers, and a null (System V
// ABI).
#pragma once

#include <array>

#include "guest/guest_memory.h"
#include "machine/types.h"

namespace annex::sim {

inline bool are_registers_of_entry(Address registers, Address block_start) {
  constexpr size_t kStackPointer = 4;
  const auto all = read_guest<std::array<uint64_t, 17>>(registers);
  if (!all || all->back() != block_start) return false;
  const Address stack = (*all)[kStackPointer];
  const auto count = read_guest<uint64_t>(stack);
  return stack % 16 == 0 && count && *count > 0 && read_guest<uint64_t>(stack + 8 * (*count + 1)) == 0;
}

}  // namespace annex::sim
