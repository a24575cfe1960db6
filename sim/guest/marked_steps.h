// The steps of an allocator that its source marks (decode/markers.h), on a machine whose cores have Mallacc
// (hardware/mallacc.h): which of the unit's instructions run at a marker, and whether what the software does until the
// step's end takes time.
//
// The program always runs its own code. At a step's begin the unit's instruction is charged. On a hit the blocks until
// the end are charged to nobody, and the registers with the results have them when the unit has; on a miss the blocks
// are charged, and the unit learns the result at the end (mcszupdate). A hit's answer is compared with what the
// software finds: any difference is counted, and the run is not to be trusted (lab/annex_lab/sim/invariants.py).
//
// What the unit does not do it knows all the same: a list's copies are true whoever does the pushes.
//
// A step that is `free` (Mallacc 5, limit study: "simply ignored by performance simulation") costs nothing, and its
// results are there at once.
//
// In a call that a support core runs, the accelerator is that core's. What it knows is decided in the order in which
// the program calls, as all that the call does; the instructions take their time when the support core runs them.
//
// The cache is flushed where a core goes to another thread, or a thread to another core. Not modelled: flushes by
// interrupts that come back to the same thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "decode/markers.h"
#include "guest/registers.h"
#include "hardware/mallacc.h"
#include "machine/core.h"
#include "machine/parameters.h"
#include "machine/uop.h"

namespace annex::sim {

// What a thread is doing.
struct MarkedStep {
  MarkerKind begun = MarkerKind::kNone;
  bool left_out = false;                             // of the timing, until its end
  uint64_t size = 0;                                 // of a look-up
  std::optional<MallocCache::SizeClass> size_class;  // answers of the unit
  std::optional<MallocCache::Blocks> blocks;
  unsigned core = ~0u;  // where it was last
  unsigned blocks_left_out = 0;
  Address again = 0;  // it comes to this marker once more, and has done what is to be done
};

class MarkedSteps {
 public:
  MarkedSteps(const Machine& machine);

  // The thread comes to a block that begins with a marker. Whether the block, and those until the step's end, are left
  // out of the timing.
  // `captured`: the call that a support core, which is then the core, will run; else null.
  bool come_to(MarkedStep& step, const Block& block, GuestRegisters& registers, Core& core, Origin origin,
               Call* captured = nullptr);
  // It comes to a block while a step is left out: whether that goes on.
  bool goes_on(MarkedStep& step, const Block& block);
  void switch_thread(unsigned core) { units_[core].flush(); }

  void describe(nlohmann::json& out) const;

 private:
  enum class Who : uint8_t { kSoftware, kUnit, kFree };
  using Operand = Mallacc::Operand;

  // A step begins; true where it is left out.
  bool begin(MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand first, Operand second);
  void end(MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand first, Operand second);
  void end_size(const MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand number, Operand bytes);
  void end_pop(const MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand head, Operand next);
  Who who_does(MarkerKind begin) const;
  void has(const Mallacc::Place& place, MarkerKind begun, Operand result) {
    units_[place.core.index()].has_result(place, result.in, who_does(begun) == Who::kFree);
  }

  const MallaccParameters parameters_;
  std::deque<Mallacc> units_;  // by core
  uint64_t wrong_answers_ = 0;
  uint64_t without_end_ = 0;
  uint64_t left_out_ = 0;                      // steps
  std::map<uint32_t, uint64_t> blocks_asked_;  // by size class: for how many blocks (Mallacc figure 6)
};

}  // namespace annex::sim
