// The registers of the thread that asks, at the start of a block or in a system call: whoever runs the program reads
// and writes them. So do only what is rare, entries and returns of calls that a unit serves, markers, the time stamp
// counter, the system call that asks where the heap begins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::sim {

// The 16 of integers in the order of their numbers in machine code; the base address of fs, the thread pointer; and
// where the thread goes on, which is only read.
enum class GuestRegister : size_t { kRax = 0, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi, kThreadPointer = 16, kNext };
constexpr size_t kGuestRegisters = 18;

class GuestRegisters {
 public:
  virtual ~GuestRegisters() = default;
  virtual uint64_t read(GuestRegister which) = 0;
  virtual void write(GuestRegister which, uint64_t value) = 0;
};

}  // namespace annex::sim
