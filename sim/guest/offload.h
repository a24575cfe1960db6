// Calls of the allocator that a hardware unit runs in place of the core that makes them, under any allocator.
//
// A call of malloc, free or their family is found by its symbol. The program's thread runs it where it stands, in no
// time, with the turn in its hands from the entry to the return: so calls come in the order of simulated time, and none
// meets another one half done. What it did is captured (hardware/call.h) and becomes a request; the unit runs it again
// in its own time, and the main core goes on until it needs the result.
//
// Whose thread-local data a call sees decides what is simulated. Parked: a thread of the program that does nothing else
// lends its thread pointer from entry to return, so that all calls see one thread's heap; sim/qemu/parked.c starts it
// and says so by a system call that Linux doesn't have. Caller: the data of who calls, as ever; the unit then works
// through as many heaps as there are threads. With several support cores each serves a cluster of main cores, and has a
// parked thread of its own.
//
// What a call has on the caller's stack is on the unit's own. The clearing of calloc and the copying of realloc stay
// with the main core, after the answer: they touch the program's data. So does the store of posix_memalign's result.
//
// A unit may leave calls to the core that made them (of large blocks): their code is then run there, as one that begins
// at the call's entry and has the core to itself until its return.
//
// A call that has to wait in the kernel, for a thread that is no part of this (a background thread's lock), runs at the
// core that made it, from its beginning; until it is over other calls run at their cores too. Both are counted. So does
// a call that spins, for a thread that cannot run before it returns.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "guest/functions.h"
#include "guest/registers.h"
#include "hardware/call.h"
#include "hardware/units.h"
#include "machine/core.h"
#include "machine/memory_system.h"

namespace annex::sim {

// A thread's call, from entry to return.
struct CapturedCall {
  Function function = Function::kNone;
  Address entry = 0;
  Address slot = 0;   // on the stack, of its return address
  unsigned unit = 0;  // that serves it
  std::array<uint64_t, 3> arguments = {};
  uint64_t own_thread_pointer = 0;  // of the thread; 0: it has kept it
  bool recording = true;            // false: it runs at its own core after all
  Call call;
};

class Offload {
 public:
  Offload(const Machine& machine, std::deque<Core>& cores, MemorySystem& memory);

  // A thread of the program parks: its thread pointer and its stack serve the calls of the next support core.
  void park(GuestRegisters& registers);
  bool ready() const { return !parked_needed_ || parked_.size() == units_.size(); }

  // At the entry; null where the call runs at its own core.
  std::unique_ptr<CapturedCall> begin(Function function, const Core& core, Address entry, Address slot,
                                      GuestRegisters& registers);
  void record(CapturedCall& captured, const Block& block, std::span<const MemoryAccess> accesses, Address next,
              Cycles at);
  // It was left by longjmp or an exception: its stack is gone.
  static bool left_by_a_jump(const CapturedCall& captured, GuestRegisters& registers) {
    return captured.slot != 0 && registers.read(GuestRegister::kRsp) > captured.slot;
  }
  // It has done more than calls do, and pauses: it waits for a thread that cannot run before it returns.
  static bool spins(const CapturedCall& captured, const Block& block);
  // The call must wait: what it did so far runs at its own core.
  void give_up(CapturedCall& captured, Core& core);
  // At the return: the thread has its own thread pointer again.
  void restore(CapturedCall& captured, GuestRegisters& registers);

  // What the call asked for and got. `result`: the register's value at the return; of a call that was left by a jump 0.
  static void conclude(CapturedCall& captured, Address result);
  // Whether its unit serves it; if not, it has been run at its own core.
  bool served(CapturedCall& captured, Core& core);
  // A call that was given up is over.
  void over(const CapturedCall& captured, const Core& core) {
    unit_of(captured).ran_at_its_core(core, captured.call.facts);
  }
  // The main core asks. The number of the request; what stays with the main core is left in `data`.
  uint64_t ask(CapturedCall& captured, Core& core, Call& data);
  static bool needs_answer(Function function) { return function != Function::kFree; }
  // The main core has its answer, clears or copies, and returns.
  void answer(const CapturedCall& captured, Core& core, Cycles when, const Call& data, Address next);

  Unit& unit_of(const CapturedCall& captured) const { return *units_[captured.unit]; }
  static Service service_of(Function function) { return needs_answer(function) ? Service::kAllocate : Service::kFree; }
  void finish();  // all that units still have to do
  // Adds what its units are called.
  void describe(nlohmann::json& out) const;

 private:
  // A thread that lends its data.
  struct Parked {
    uint64_t thread_pointer = 0;
    Address stack = 0;
    bool lent = false;  // to a call that is under way
  };

  unsigned unit_number(const Core& core) const;

  // What the allocator's code has cost a main core so far: locked instructions, and data that its own caches lacked.
  struct Spent {
    uint64_t atomics = 0;
    uint64_t misses = 0;
  };
  Spent spent(const Core& core) const;
  void add_since(const Spent& before, const Core& core);

  MemorySystem& memory_;
  Pages& pages_;
  const bool parked_needed_;
  const unsigned main_cores_;
  const std::vector<std::unique_ptr<Unit>> units_;
  std::vector<Parked> parked_;  // by unit
  std::vector<MemoryAccess> moved_;
  Block return_;
  Block store_result_;

  uint64_t before_ready_ = 0;  // calls at their own cores: before there was a parked thread,
  uint64_t beside_ = 0;        // while another one waited,
  uint64_t given_up_ = 0;      // and that had to wait
  Spent by_stubs_;             // what calls cost the main cores that make them, beside their data
  uint64_t data_steps_ = 0;    // of blocks that stay with the main cores
};

}  // namespace annex::sim
