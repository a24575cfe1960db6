// Restartable sequences (rseq in Linux): how a thread knows on which CPU it is, and changes data of that CPU without
// locks. The kernel restarts such a sequence where it interrupts one; here none ever is, since the simulation lets a
// thread go on until it is out (Simulation::look_around). TCMalloc's caches for each CPU need it.
//
// Simplification: signals do interrupt sequences, and don't restart them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "machine/types.h"

namespace annex::sim {

// What a thread shares with the kernel, and what it points to: Linux's struct rseq and struct rseq_cs as they have been
// since 4.18. Not the headers' own: theirs has grown at its end, and a newer one's size would be asked of every
// program.
struct alignas(32) RestartableArea {
  uint32_t core_at_start;
  uint32_t core;
  Address sequence;  // that it is in; 0: none
  uint32_t flags;
  uint32_t unused[3];
};
struct alignas(32) RestartableSequence {
  uint32_t version;
  uint32_t flags;
  Address start;
  uint64_t bytes;
  Address abort;
};
static_assert(sizeof(RestartableArea) == 32 && sizeof(RestartableSequence) == 32);

// Of one thread.
class Restartable {
 public:
  // The system call's answer: 0, or a negative errno.
  int64_t call(Address area, uint32_t bytes, uint32_t flags, unsigned core);

  bool used() const { return area_ != 0; }
  // It runs on: tells the program where, if that is another core than before, or others ran there.
  void runs_on(unsigned core, bool others_ran) {
    if (area_ != 0 && (others_ran || core != told_)) tell(core);
  }
  // It was interrupted, as if: what it knows of its CPU is written anew.
  void interrupted() {
    if (area_ != 0 && told_ != kNowhere) tell(told_);
  }
  void waits() { told_ = kNowhere; }
  void ends() { area_ = 0; }
  // The code at this address is in the middle of a sequence. Asked at the end of each turn, so the area is read as it
  // lies in the process: while it is registered it must stay, or Linux too ends the program.
  bool inside(Address code) const {
    if (area_ == 0) return false;
    Address sequence;
    std::memcpy(&sequence, reinterpret_cast<const void*>(area_ + offsetof(RestartableArea, sequence)), sizeof sequence);
    return sequence != 0 && in_sequence(sequence, code);
  }

 private:
  static constexpr unsigned kNowhere = ~0u;

  void tell(unsigned core);
  static bool in_sequence(Address sequence, Address code);

  Address area_ = 0;  // the program's; 0: none
  unsigned told_ = kNowhere;
};

}  // namespace annex::sim
