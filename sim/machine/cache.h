// One cache: tags, states and arrival times of lines; no data. And the registers of its outstanding misses.
//
// Models: set-associative, least recently used among the ways of a set, the set chosen by the low bits of the line's
// number. A line that is on its way is in the cache already, with the time at which it arrives. A cache may be parted
// by ways (SpeedMalloc 6.4.1): lines that the allocator's code brings go to its ways, all others to the other ways, and
// whoever looks for a line finds it in either part.
// Parameters: CacheParameters (bytes, ways, allocator_ways, latency, mshrs; the prefetcher's part is in prefetcher.h).
// Simplifications: no banks, no ports, no partial lines; write-backs from the level above do not count as uses.
//
// What must wait for something that another request started asks with its own time, which may lie before that start:
// cores are simulated up to a quantum apart, and a core's loads issue out of order. Two rules keep this harmless:
//   - nobody waits for a line longer than the line's fetch took (Cache::arrival);
//   - a miss waits only for registers that are held, without a break, since its own time or before (Mshrs::acquire).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "machine/parameters.h"
#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

struct CacheStatistics {
  PerAccess accesses = {};  // demand look-ups
  PerAccess misses = {};    // of these
  PerRequester late_hits = {};
  PerRequester evictions = {};
  PerRequester write_backs = {};
  uint64_t invalidations = 0;
  uint64_t mshr_cycles = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("accesses", self.accesses, "demand look-ups");
    visit("misses", self.misses, "demand look-ups that did not find the line");
    visit("late_hits", self.late_hits, "hits on a line that was still on its way");
    visit("evictions", self.evictions, "lines that made room, by whose access needed it");
    visit("write_backs", self.write_backs, "of the evictions: dirty, so written to the next level");
    visit("invalidations", self.invalidations, "lines taken away by coherence, or because a cache below evicted them");
    visit("mshr_cycles", self.mshr_cycles, "cycles that misses waited for a free register of outstanding misses");
  }
};

// The registers of outstanding misses. Each remembers since when and until when it is held without a break.
class Mshrs {
 public:
  struct Grant {
    Cycles start;   // when the miss may go on
    size_t number;  // of the register; for hold()
  };

  explicit Mshrs(uint32_t count) : held_(count) {}

  // A register for a miss at time `at`: at once if fewer than all are held then, else when the first of them is free.
  Grant acquire(Cycles at) const {
    // They are taken in turn and misses take about the same time, so that this one is free if any is, nearly always.
    if (held_[next_].until <= at) return {at, next_};
    return search(at);
  }

  bool available(Cycles at) const { return acquire(at).start == at; }

  void hold(Grant grant, Cycles until) {
    Held& held = held_[grant.number];
    if (grant.start != held.until) held.from = grant.start;  // else it waited for this one, held since before
    held.until = until;
    next_ = grant.number + 1 < held_.size() ? grant.number + 1 : 0;
  }

  void clear() {
    std::fill(held_.begin(), held_.end(), Held{});
    next_ = 0;
  }

 private:
  struct Held {
    Cycles from = 0;
    Cycles until = 0;
  };

  Grant search(Cycles at) const {
    size_t first_free = next_;
    for (size_t i = 0; i < held_.size(); ++i) {
      if (held_[i].until <= at || held_[i].from > at) return {at, i};  // not held then
      if (held_[i].until < held_[first_free].until) first_free = i;
    }
    return {held_[first_free].until, first_free};
  }

  std::vector<Held> held_;
  size_t next_ = 0;
};

// A line's place in a cache: set x ways + way.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = ~Slot{0};

struct Line {
  Cycles ready = 0;         // when its data arrive, or did
  uint32_t fetch_took = 0;  // cycles, from the request that brought it until it was ready
  State state = State::kInvalid;
  Level source = Level::kL1;           // where it came from
  Blame blame : 6 = Blame::kNone;      // whose part its fetch was
  Origin user : 1 = Origin::kProgram;  // whose code used it here last
  bool prefetched : 1 = false;         // and not used by a demand access yet

  // It was asked for at `at`, after the look-up here, and comes as the fill says.
  void arrives(Cycles at, const Fill& fill) {
    ready = fill.ready;
    fetch_took = static_cast<uint32_t>(fill.ready - at);
    source = fill.level;
    blame = fill.blame;
  }
};
static_assert(sizeof(Line) == 16);

class Cache {
 public:
  explicit Cache(const CacheParameters& parameters)
      : latency(parameters.latency),
        mshrs(parameters.mshrs),
        ways_(parameters.ways),
        parts_{Part{0, parameters.ways - parameters.allocator_ways},
               parameters.allocator_ways == 0
                   ? Part{0, parameters.ways}
                   : Part{parameters.ways - parameters.allocator_ways, parameters.allocator_ways}},
        set_mask_(parameters.bytes / (uint64_t{1} << kLineShift) / parameters.ways - 1),
        tags_((set_mask_ + 1) * ways_, kNoLine),
        used_(tags_.size()),
        lines_(tags_.size()),
        hints_(std::min(std::bit_ceil(tags_.size()) * 4, kMostHints)),
        hint_mask_(hints_.size() - 1) {}

  // Where the line is; kNoSlot: not here. Not a use: see use().
  Slot find(Address line) const {
    const Slot first = first_of(line);
    Slot found = kNoSlot;
    // All ways, since the way is as good as random: one found early would cost the host a wrong prediction.
    for (Slot slot = first; slot < first + ways_; ++slot) found = tags_[slot] == line ? slot : found;
    return found;
  }

  // The host may fetch what find() will read.
  void prepare(Address line) const {
    const Slot first = first_of(line);
    for (uint32_t way = 0; way < ways_; way += 8) {
      __builtin_prefetch(&tags_[first + way]);
      __builtin_prefetch(&used_[first + way], 1);
    }
  }

  // The same in one step, mostly, for a line that was noted when it was found; else kNoSlot, though it may be here. For
  // first-level caches, where most accesses go to lines that were used before.
  Slot find_noted(Address line) const {
    const Slot hint = hints_[line & hint_mask_];
    return tags_[hint] == line ? hint : kNoSlot;
  }
  void note(Slot slot) { hints_[tags_[slot] & hint_mask_] = slot; }

  Line& operator[](Slot slot) { return lines_[slot]; }
  const Line& operator[](Slot slot) const { return lines_[slot]; }
  Address line_in(Slot slot) const { return tags_[slot]; }
  bool empty(Slot slot) const { return tags_[slot] == kNoLine; }
  size_t slots() const { return tags_.size(); }

  // Makes it the most recently used of its set.
  void use(Slot slot) { used_[slot] = ++uses_; }

  // The slot that a new line takes, which code of `origin` brings: an empty one of its part, else the least recently
  // used.
  Slot victim(Address line, Origin origin) const {
    const Part part = parts_[index_of(origin)];
    const Slot first = first_of(line) + part.first;
    // The least of (when used, way): again without a branch that the host cannot predict.
    uint64_t least = ~uint64_t{0};
    for (uint32_t way = 0; way < part.ways; ++way) least = std::min(least, used_[first + way] << kWayBits | way);
    return first + static_cast<Slot>(least & ((1U << kWayBits) - 1));
  }

  // A register for a miss after the look-up, which ends at `at`.
  Mshrs::Grant start_miss(Cycles at, bool prefetch) {
    const Mshrs::Grant grant = mshrs.acquire(at);
    if (!prefetch) statistics.mshr_cycles += grant.start - at;
    return grant;
  }

  // Puts a line into a slot, which must be empty or have been dealt with, and returns it, used just now.
  Line& place(Slot slot, Address line) {
    tags_[slot] = line;
    lines_[slot] = Line{};
    use(slot);
    return lines_[slot];
  }

  void remove(Slot slot) {
    tags_[slot] = kNoLine;
    used_[slot] = 0;
    lines_[slot] = Line{};
  }

  // When a request, whose look-up ends at `at`, has the data: it never waits longer than the line's fetch took, so that
  // a request whose time is before that of the fetch is not held up by the other's lead.
  static Cycles arrival(const Line& line, Cycles at) {
    return std::max(at, std::min(line.ready, at + line.fetch_took));
  }

  // A demand access that hits the line, its look-up over at `at`: when it has the data, and where they come from, as
  // they may be on their way.
  Fill serve(const Line& line, Cycles at, Level here, size_t requester) {
    const Cycles ready = arrival(line, at);
    if (ready == at) return {ready, here, line.state};
    ++statistics.late_hits[requester];
    return {ready, line.source, line.state, line.blame};
  }

  void clear() {
    std::fill(tags_.begin(), tags_.end(), kNoLine);
    std::fill(used_.begin(), used_.end(), 0);
    std::fill(lines_.begin(), lines_.end(), Line{});
    mshrs.clear();
    statistics = {};
    uses_ = 0;
  }

  uint32_t latency;  // cycles
  Mshrs mshrs;
  CacheStatistics statistics;

 private:
  static constexpr Address kNoLine = ~Address{0};
  static constexpr unsigned kWayBits = 6;     // CacheParameters allow 64 ways
  static constexpr size_t kMostHints = 4096;  // of 4 bytes: more would cost more of the host's caches than they save

  // Ways of each set that are next to each other.
  struct Part {
    uint32_t first;
    uint32_t ways;
  };

  Slot first_of(Address line) const { return static_cast<Slot>((line & set_mask_) * ways_); }

  uint32_t ways_;
  std::array<Part, 2> parts_;  // by the origin of what fills them
  uint64_t set_mask_;
  uint64_t uses_ = 0;
  std::vector<Address> tags_;   // line numbers, those of a set side by side
  std::vector<uint64_t> used_;  // uses_ when it was used last; 0: empty, so the first to be replaced
  std::vector<Line> lines_;
  // Where lines were found last, by the low bits of their numbers. The slot's tag is compared in any case, so a wrong
  // or old one does no harm and hints need no upkeep.
  std::vector<Slot> hints_;
  size_t hint_mask_;
};

}  // namespace annex::sim
