// A core: runs blocks of micro-ops with their memory accesses, and says how long they took and why.
//
// What it models, in the manner of ZSim's instruction window: micro-ops are gone through once, in program order, and
// each is given the cycles at which it passes four stages, from what the ones before it left behind:
// - Dispatch: in order, `width` a cycle; not before the front end delivers (fetch, decode, wrong predictions), and only
//   into free entries of the reorder buffer, the scheduler, and the load or store queue.
// - Issue: the first cycle with a free port of its class at which its operands are ready. Later ones may be earlier.
// - Done: after its latency. A load's is the memory's answer, or that of a store which is still queued.
// - Retirement: in order, `retire_width` a cycle. Every cycle by which it advances is charged to one Cause.
//
// Stores ask for their line when they retire, and are written in order (TSO), one a cycle; requests for lines overlap.
// Locked instructions and fences wait for all before them and for the store queue; nothing after them starts earlier.
// The in-order kind dispatches only what can issue at once, so it stalls at the first use of a value that isn't there.
//
// A load that is contained in a store which isn't written yet gets its data from there; one that it overlaps otherwise
// waits until it is written. Loads guess that older stores whose address isn't known are to other bytes: where that was
// wrong they begin again, with all after them, and wait the next times.
//
// Simplifications: no wrong path is executed. A store's address takes no port of its own. Where several micro-ops want
// a port at the same cycle, it is the first in program order that gets it. Decode is counted a block at a time. All
// lines of a block are fetched at its start: what hits is there in time, and a miss holds dispatch for as long as it
// takes beyond that; nothing is fetched ahead. Direct branches never miss a target. A software prefetch is a load that
// nobody waits for, dropped where its page is not there; all levels of hints fetch into the L1. A fused pair has one
// dispatch slot and one entry in the reorder buffer, but two in the scheduler, whose entries are freed four cycles at a
// time. A port's busy time is at most kMostBusy.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "machine/core_statistics.h"
#include "machine/core_window.h"
#include "machine/memory_system.h"
#include "machine/parameters.h"
#include "machine/predictor.h"
#include "machine/types.h"
#include "machine/unwritten_stores.h"
#include "machine/uop.h"

namespace annex::sim {

class Core : private CoreWindow {
 public:
  Core(unsigned index, const Machine& machine, MemorySystem& memory);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // When its last instruction retired: the sum of all cycles charged.
  Cycles now() const { return pace_.retired(); }
  // When its next instruction can take effect: after a wrong prediction, not before it is delivered.
  Cycles resumes() const { return std::max(now(), front_until_); }
  unsigned index() const { return index_; }

  // One run of a block: its accesses in program order (several an instruction, or none, whatever its micro-ops say),
  // and the address at which the program went on.
  void run(const Block& block, std::span<const MemoryAccess> accesses, Address next, Origin origin);
  // As run(), where only what it leaves in caches, predictors and pages matters: an instruction takes a cycle, and
  // waits for its own misses. Nothing is charged to a cause.
  void pass(const Block& block, std::span<const MemoryAccess> accesses, Address next, Origin origin);

  // An instruction that asks a unit outside for something, given a register, dispatched and issued like a branch:
  // returns when it is issued. answer() must follow before anything else runs here.
  Cycles ask_unit(Address at, Register argument, Origin origin);
  // It has its result then, and retires not before.
  void answer(Register result, Cycles at, Cause waited_for);
  // An instruction of a unit inside the core, in the program's stream: it has a slot, a port of its class, and waits
  // for its sources, but not less than until `from`. Returns when its result is there, and from when on only `from`
  // held it.
  struct Ran {
    Cycles done;
    Cycles waited;
  };
  Ran run_inside(Address at, const Uop& uop, Cycles from, Cycles latency, Origin origin);
  // One that reads memory, and whose result goes to the unit: it retires at once, like a store, and keeps an entry of
  // the store queue until the line is there, which is what it returns.
  Cycles read_inside(Address at, const Uop& uop, Address address, Cycles latency, Origin origin);
  // A register has its value by other means than the instructions that ran.
  void set_ready(Register value, Cycles at) { ready_[value] = std::max(at, floor_); }
  // When all that it has stored is written.
  Cycles written() const { return written_; }
  // When the last value that was written to the register is there.
  Cycles ready(Register value) const { return ready_[value]; }

  // The window drains, then this many cycles pass (a system call, a switch to another thread); charged to who ran last.
  void spend(Cycles cycles, Cause cause);
  // The window drains, and nothing happens until then.
  void idle_until(Cycles at);

  // A copy: the base's cycles are those that no other cause has held up.
  CoreStatistics statistics() const;
  // Cycles charged to a cause that is not the base, which is cheap to ask for.
  Cycles charged(Cause cause) const { return statistics_.cycles(cause); }

 private:
  // What older stores mean for a load: when it goes on, and when the store that forwards to it has its data; 0: none.
  struct Conflict {
    Cycles from = 0;
    Cycles data = 0;
  };
  // Cycles that something came late, and why.
  struct Delay {
    Cycles cycles = 0;
    Cause cause = Cause::kBase;
    Blame blame = Blame::kNone;
  };
  struct Why {
    Cause cause = Cause::kBase;
    Blame blame = Blame::kNone;
  };
  // What an access to memory took, piece by piece.
  struct Answer {
    Cycles done = 0;
    Cycles fault = 0;
    Cycles translation = 0;
    Cycles rest = 0;
    Cause cause = Cause::kL1;
    Blame blame = Blame::kNone;
  };
  enum class Queued : uint8_t { kNone, kLoad, kStore };

  Core(unsigned index, const CoreKind& kind, MemorySystem& memory);

  template <bool kInOrder>
  Cycles run_uops(const Block& block, std::span<const MemoryAccess> accesses);
  template <bool kInOrder>
  Cycles run_plain(Pace& pace, const Uop& uop);
  template <bool kInOrder>
  void run_load(Pace& pace, const Uop& uop, const MemoryAccess* access);
  template <bool kInOrder>
  void run_store(Pace& pace, const Uop& uop, const MemoryAccess* access);
  template <bool kInOrder>
  const MemoryAccess* run_extras(const MemoryAccess* access, const MemoryAccess* end, size_t before);
  void run_special(const Uop& uop);
  void run_prefetch(const Uop& uop, const MemoryAccess* access);
  // By software, of which nobody waits for the result.
  void prefetch(const MemoryAccess& access, Cycles at);
  // All micro-ops of a locked instruction; returns its end.
  const Uop* run_locked(const Uop* first, const Uop* last, std::span<const MemoryAccess> accesses);

  // Stages: core_stages.h.
  template <Queued kQueued>
  Delay dispatch(Pace& pace, bool fused);
  static Delay lateness(const Pace& pace, Cycles from, Cycles to, Cause cause, Blame blame = Blame::kNone);
  void enter_next_word(Pace& pace);
  void advance(Cycles to);
  Cycles operands_ready(const Pace& pace, const Uop& uop) const;
  template <bool kInOrder>
  Cycles issue(Pace& pace, UopClass kind, Cycles ready);
  Cycles issue_slowly(UopClass kind, Cycles ready);
  void set_destinations(const Uop& uop, Cycles at);
  void raise_floor(Cycles to);
  Cycles retire(Pace& pace, bool fused, Cycles done);
  void charge(Cause cause, Cycles cycles, Blame blame = Blame::kNone);
  void charge(Cycles held, Delay late, Cause cause);
  void charge(Cycles held, Delay late, const Answer& answer);
  Word& word_of(Cycles cycle) { return words_[cycle / kWordCycles % kWords]; }
  // For what is rare, and works on the members.
  template <class Work>
  auto apart(Pace& pace, Work&& work);

  Conflict look_among_stores(const MemoryAccess& access, Cycles at);
  template <bool kStore>
  Answer ask(const MemoryAccess& access, Cycles at);
  template <bool kStore>
  Answer ask_more(const MemoryAccess& access, Cycles at, const Reply& first);
  Answer ask_locked(const MemoryAccess& access, Cycles at);
  static Answer answer_of(const Reply& reply, Cycles at);
  void begin(Origin origin);
  static Cycles step_of(uint32_t width);
  void fetch(const Block& block);
  void decode(const Block& block);
  static Cycles after_taken(Cycles slot, Cycles cycles, Cycles step);
  void hold_front_end(Cycles until, Cause cause);
  bool predicted(const Block& block, Address next);
  void finish(const Block& block, Address next, Cycles branch_done);
  bool same_string_chunk(const Block& block, std::span<const MemoryAccess> accesses);
  template <Queued kQueued>
  Cycles issue_inside(Address at, const Uop& uop, Cycles from, Origin origin);

  MemorySystem& memory_;
  const unsigned index_;

  // Parameters, as the loop wants them.
  const bool in_order_, forwards_any_, prefetches_;
  const bool narrow_decode_;
  const Cycles decode_step_, dispatch_step_, retire_step_;  // from one slot to the next
  const Cycles decode_lead_;                                // slots by which decode is ahead of dispatch, at most
  const uint32_t rob_, rob_mask_, scheduler_;
  const Cycles front_end_, taken_, mispredict_, forward_, atomic_, fence_, pause_, l1d_latency_, l1i_latency_;
  std::array<uint32_t, kUopClasses> latency_ = {};
  std::array<uint32_t, kUopClasses> busy_ = {};
  std::array<uint64_t, kUopClasses> ports_ = {};  // in each cycle of a word; none for classes that keep theirs
  std::array<uint64_t, kUopClasses> all_ports_ = {};

  Pace pace_;

  // The front end.
  Cycles front_until_ = 0;  // nothing is delivered before
  Cause front_cause_ = Cause::kBase;
  Cycles decoded_slot_ = 0;  // the last that was decoded
  Address fetched_line_ = ~Address{0};

  // Execution.
  Cycles floor_ = 0;  // nothing is issued before: the last fence's end
  // When registers have their values; not before floor_, which is also that of no register.
  std::array<Cycles, kRegisters + 1> ready_ = {};
  std::array<Cycles, kUopClasses> full_until_ = {};  // a class with busy ports cannot start in (dispatch_, this)

  // Stores and accounting.
  Cycles written_ = 0;               // when the youngest store is written
  Cause waited_for_ = Cause::kBase;  // by the last load of which look_among_stores() said that it waits
  Address block_ = 0;                // that runs: with an instruction's number in it, names that instruction

  Origin origin_ = Origin::kProgram;
  Cycles since_ = 0;                    // when it last changed
  std::array<Cycles, 2> elapsed_ = {};  // by origin, up to then
  CoreStatistics statistics_;
  ExecutionStatistics* counts_ = &statistics_.of(Origin::kProgram);
  Predictor predictor_;

  // The last iteration of a repeated string instruction.
  Address string_ = 0;
  Address string_load_ = 0, string_store_ = 0;

  // Of the last micro-ops: the reorder buffer, and one more, as what is fused writes its entry a second time.
  std::array<Cycles, 2 * kMostEntries> retire_slots_ = {};
  Queue loads_, stores_;
  std::array<Why, kMostEntries> store_causes_ = {};
  UnwrittenStores unwritten_;
  std::array<Word, kWords> words_ = {};  // from dispatch_'s on; before it nothing is left
  Delay asked_late_;                     // the dispatch of what asks a unit
};

}  // namespace annex::sim
