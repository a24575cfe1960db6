// Mallacc, the malloc accelerator of one core (Kanev et al., ASPLOS 2017, sections 4.1 and 4.2): its instructions in
// the core's pipeline, on the malloc cache's contents (malloc_cache.h).
//
//   mcszlookup      size -> class, bytes, ZF      `lookup` cycles, and `index` where ranges are of indices
//   mcszupdate      size, class, bytes            the same
//   mchdpop         class -> head, next, ZF       `list` cycles, and not before the entry's prefetch is back
//   mchdpush        class, block                  the same
//   mcnxtprefetch   class, head                   `list` cycles; then it reads *head through the core's caches, retires
//                                                 as a store does, and its entry is blocked until the line is here
//   sampling        bytes                         one cycle; an interrupt each `sample_bytes`
//
// The list instructions are in order, through a hidden register. Those that set ZF are followed by a branch on it,
// which is predicted as any other: it is taken on a miss (Figures 10 and 12).
//
// What a look-up finds and what a list has is decided when the program runs the instruction. Its time passes then, too;
// or, in a call that a support core runs later, when it is run there.
//
// Assumed: each is one micro-op and takes a port of the integer units, or of loads (mcnxtprefetch); instructions that
// find no entry take as long as others, but mcnxtprefetch then reads nothing; the counter for samples is told of bytes
// by an instruction of its own; it counts each core's, as a counter of the core does.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "hardware/call.h"
#include "hardware/malloc_cache.h"
#include "machine/core.h"
#include "machine/parameters.h"

namespace annex::sim {

struct MallaccStatistics {
  uint64_t lookups = 0;
  uint64_t lookup_hits = 0;
  uint64_t updates = 0;
  uint64_t evictions = 0;
  uint64_t pops = 0;
  uint64_t pop_hits = 0;
  uint64_t pushes = 0;
  uint64_t drops = 0;
  uint64_t prefetches = 0;
  uint64_t reads = 0;
  uint64_t blocked = 0;
  Cycles blocked_cycles = 0;
  uint64_t flushes = 0;
  uint64_t counted = 0;
  uint64_t samples = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("lookups", self.lookups);          // mcszlookup
    visit("lookup_hits", self.lookup_hits);  // of them
    visit("updates", self.updates);          // mcszupdate
    visit("evictions", self.evictions);      // entries that made room
    visit("pops", self.pops);                // mchdpop
    visit("pop_hits", self.pop_hits);        // of them
    visit("pushes", self.pushes);            // mchdpush
    visit("drops", self.drops);              // of no block: software changed a list otherwise
    visit("prefetches", self.prefetches);    // mcnxtprefetch
    visit("reads", self.reads);              // of them, those that read memory
    visit("blocked", self.blocked);          // pops and pushes that waited for a prefetch
    visit("blocked_cycles", self.blocked_cycles);
    visit("flushes", self.flushes);  // of all entries: another thread came to the core
    visit("counted", self.counted);  // bytes, for samples
    visit("samples", self.samples);
  }
};

class Mallacc {
 public:
  // A value, and the register that it is in.
  struct Operand {
    Register in = kNoRegister;
    uint64_t value = 0;
  };
  // An instruction of the program: where it is, whose, and on which core it runs: now, or with the call that it is in.
  struct Place {
    Core& core;
    Address at;
    Origin origin;
    Call* captured = nullptr;
  };
  // Nothing on a miss; and when the results are there, of one that ran.
  template <class Result>
  struct Answer {
    std::optional<Result> found;
    Cycles done = 0;
  };

  explicit Mallacc(const MallaccParameters& parameters);

  Answer<MallocCache::SizeClass> look_up(const Place& place, Operand size);
  void update(const Place& place, uint64_t size, Operand number, Operand bytes);
  // What the unit knows by other means, in no time: for studies in which it does not do all steps.
  void learn(uint64_t size, uint32_t number, uint64_t bytes) { cache_.update(size, {number, bytes}); }
  void learn_push(uint32_t number, Address block) { cache_.push(number, block); }
  Answer<MallocCache::Blocks> pop(const Place& place, Operand number);
  void push(const Place& place, Operand number, Operand block);
  void drop(const Place& place, Operand number);
  // The list begins with the head; after it comes `next`, which is what the instruction reads.
  void prefetch(const Place& place, Operand number, Operand head, Address next);
  void count(const Place& place, Operand bytes);
  // The register has the last look-up's or pop's result when that is there; or, of what costs nothing, at once.
  void has_result(const Place& place, Register in, bool at_once);
  // Another thread comes to the core.
  void flush() { statistics_.flushes += cache_.flush(); }

  const MallaccStatistics& statistics() const { return statistics_; }
  const std::set<uint32_t>& classes() const { return classes_; }  // that it was asked for or told of

 private:
  // A prefetch's line is here.
  struct Arrival {
    uint64_t prefetch = 0;
    Cycles at = 0;
  };
  // Where it is, and whose.
  struct Site {
    Address at;
    Origin origin;
  };

  // Passes the core to what takes the instruction's time: now, or as a part of the captured call.
  template <class Act>
  static void perform(const Place& place, Act&& act);
  Cycles run(Core& core, Site site, const Uop& uop, Cycles latency, Cycles from = 0);
  Cycles run_on_list(Core& core, Site site, Uop uop, uint32_t number, uint64_t prefetch);
  void branch(Core& core, Site site, bool hit);
  void put(const Place& place, Operand number, Operand block);  // mchdpush

  const MallaccParameters parameters_;
  const Cycles look_up_;
  const bool charged_;
  MallocCache cache_;
  uint64_t prefetches_ = 0;
  std::unordered_map<uint32_t, Arrival> arrivals_;  // by class, the last one's
  Cycles done_ = 0;                                 // when the last look-up's or pop's results are there
  Block branch_;
  uint64_t until_sample_;
  std::set<uint32_t> classes_;
  MallaccStatistics statistics_;
};

}  // namespace annex::sim
