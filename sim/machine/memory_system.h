// Everything between the cores and their data: TLBs, private caches, the shared last level with its directory, memory,
// and the program's pages.
//
// Models: for each core L1I, L1D, an L2 that contains both, and two levels of TLBs; one last-level cache that contains
// all L2s, and in each of its lines a directory entry: which cores have it, and which of them may have written it.
// MESI; a core's state of a line is the higher of its L1D's and its L2's. Latencies add level by level; an L1 hit with
// enough rights takes the L1's latency. A line that is on its way is present, and its users wait for it (cache.h).
// Transactions of one line that involve several cores queue in its directory entry, so contended lines serialize.
// Parameters: all of Machine's caches, TLBs, coherence, dram and pages.
// Simplifications: no limit on bandwidth between the caches; evictions and write-backs take no time; the directory
// knows of every eviction; an upgrade holds loads of the same core up as well; a core's stores do not take lines out of
// its own L1I; the allocator's and program's lines stay cached when their pages are unmapped.
//
// Simulated times of cores differ by up to Machine::quantum, and requests come in the order of simulation. cache.h and
// dram.h say for each resource how that is kept harmless: nobody waits for what began later than itself, except that a
// queue which is busy without a break is joined at its end.
// One host thread at a time calls this. Its parts: memory_system.cpp (a core's own side), last_level.cpp (what cores
// share), memory_system_json.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine/cache.h"
#include "machine/dram.h"
#include "machine/pages.h"
#include "machine/parameters.h"
#include "machine/prefetcher.h"
#include "machine/tlb.h"
#include "machine/types.h"

namespace annex::sim {

struct Reply {
  Cycles ready;  // when the data are here; of a store: when the line is the core's own and written
  Level level;
  Cycles translation;  // of ready - at: TLBs and page walk
  Cycles fault;        // of ready - at: the page fault
};

struct CoherenceStatistics {
  PerOrigin upgrades = {};
  PerOrigin transfers = {};
  PerOrigin invalidated = {};
  uint64_t contended = 0;
  PerOrigin queue_cycles = {};
  uint64_t asked = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("upgrades", self.upgrades, "stores to lines that this core had shared");
    visit("transfers", self.transfers, "lines that came from another core's cache");
    visit("invalidated", self.invalidated, "copies in other cores that this core's stores took away");
    visit("contended", self.contended, "of these: copies that the other core had got less than a quantum before");
    visit("queue_cycles", self.queue_cycles, "cycles that requests waited for earlier transactions of the same line");
    visit("asked", self.asked, "requests of other cores that this core's caches had to answer");
  }
};

// Misses of a core's L2, or the cycles that they took beyond the L2's own latency, by the allocator's part in them.
struct AllocatorShare {
  uint64_t inside = 0;
  uint64_t evicted = 0;
  uint64_t touched = 0;
  uint64_t evicted_and_touched = 0;
  uint64_t other = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("inside", self.inside, "by the allocator's own accesses");
    visit("evicted", self.evicted, "by the program, on a line whose last eviction here an allocator's access caused");
    visit("touched", self.touched, "by the program, on a line that allocator code of any core used last");
    visit("evicted_and_touched", self.evicted_and_touched, "by the program, both");
    visit("other", self.other, "by the program, neither");
  }
};

// A set of lines, by page and a bit for each line of it.
class LineSet {
 public:
  bool contains(Address line) const {
    const uint64_t* lines = pages_.find(line >> kShift);
    return lines != nullptr && (*lines & bit(line)) != 0;
  }
  void insert(Address line) { pages_.at(line >> kShift) |= bit(line); }
  // Whether it was in.
  bool erase(Address line) {
    uint64_t* lines = pages_.find(line >> kShift);
    if (lines == nullptr || (*lines & bit(line)) == 0) return false;
    *lines &= ~bit(line);
    return true;
  }
  void clear() { pages_.clear(); }

 private:
  static constexpr unsigned kShift = kPageShift - kLineShift;
  static uint64_t bit(Address line) { return uint64_t{1} << line % 64; }

  AddressMap<uint64_t> pages_;
};

class MemorySystem {
 public:
  explicit MemorySystem(const Machine& machine);

  // A demand access of a core to one address, at a time. What crosses a line is two accesses: the caller's business.
  Reply load(unsigned core, Address address, Cycles at, Origin origin) {
    return access<Access::kLoad>(core, address, at, origin);
  }
  Reply store(unsigned core, Address address, Cycles at, Origin origin) {
    return access<Access::kStore>(core, address, at, origin);
  }
  Reply fetch(unsigned core, Address address, Cycles at, Origin origin) {
    return access<Access::kFetch>(core, address, at, origin);
  }

  Pages& pages() { return pages_; }
  const Pages& pages() const { return pages_; }

  // Pages in [from, to) are no longer resident: their TLB entries go in all cores. Call it after Pages::map (over
  // something), unmap, drop and remap (for its old range): a page that a TLB knows is taken to be resident.
  void shoot_down(Address from, Address to);

  // As after construction, at time 0: caches, TLBs, prefetchers, memory and statistics; but pages stay resident.
  void reset();
  // Statistics only, at a time.
  void reset_statistics(Cycles at);

  // Adds "cores", "llc", "dram" and "pages". `at`: the time up to which the mean of resident memory is taken.
  void to_json(nlohmann::json& json, Cycles at) const;

  // For tests and statistics.
  State state_of(unsigned core, Address address) const;  // the higher of L1D's and L2's
  bool cached(unsigned core, Address address) const;     // in any of the core's caches
  bool in_llc(Address address) const { return llc_.find(line_of(address)) != kNoSlot; }
  const CacheStatistics& l1i(unsigned core) const { return sides_[core].l1i.statistics; }
  const CacheStatistics& l1d(unsigned core) const { return sides_[core].l1d.statistics; }
  const CacheStatistics& l2(unsigned core) const { return sides_[core].l2.statistics; }
  const CacheStatistics& llc() const { return llc_.statistics; }
  const DramStatistics& dram() const { return dram_.statistics; }
  const CoherenceStatistics& coherence(unsigned core) const { return sides_[core].coherence; }
  const AllocatorShare& allocator_misses(unsigned core) const { return sides_[core].share_misses; }
  const AllocatorShare& allocator_cycles(unsigned core) const { return sides_[core].share_cycles; }
  const TlbStatistics& itlb(unsigned core) const { return sides_[core].itlb.statistics; }
  const TlbStatistics& dtlb(unsigned core) const { return sides_[core].dtlb.statistics; }
  const TlbStatistics& stlb(unsigned core) const { return sides_[core].stlb.statistics; }
  // What is wrong with inclusion and the directory, a line each; empty: nothing. Slow.
  std::vector<std::string> inconsistencies() const;

 private:
  // What belongs to one core.
  struct Side {
    Side(const Machine& machine, unsigned number);

    unsigned number;
    Cache l1d;
    Tlb dtlb;
    Cache l1i;
    Tlb itlb;
    Cache l2;
    Tlb stlb;
    Prefetcher l1d_prefetcher;
    Prefetcher l1i_prefetcher;
    Prefetcher l2_prefetcher;
    CoherenceStatistics coherence;
    AllocatorShare share_misses;
    AllocatorShare share_cycles;
    std::vector<Slot> in_llc;      // by slot of the L2: its line's in the last level, which keeps it for as long
    LineSet evicted_by_allocator;  // not in the L2, and an allocator's access caused that
  };

  // Beside each line of the last level.
  struct Entry {
    uint64_t sharers = 0;  // cores whose L2 has the line, a bit each
    int owner = kNobody;   // the only sharer, which may write it without asking: its state is E or M
    BusyPeriod busy;       // with transactions that involve several cores
  };
  static constexpr int kNobody = -1;
  static constexpr uint64_t bit_of(unsigned core) { return uint64_t{1} << core; }

  struct Request {
    Address line;
    Access access;
    Origin origin;
    bool prefetch = false;
  };

  // Whose code used a line last, after the request; `touched`: before it, the allocator's.
  static Origin toucher_of(const Request& request, bool touched) {
    if (!request.prefetch) return request.origin;
    return touched ? Origin::kAllocator : Origin::kProgram;
  }

  struct Translation {
    Cycles cycles;
    Cycles fault;
  };

  // What prefetchers look at.
  enum class Event : uint8_t { kNone, kMiss, kFirstUse };  // the last: of a prefetched line, by a demand access

  // What a level gives to the one above it.
  struct Fill {
    Cycles ready;
    Level level;
    State state;            // that the level above may take
    bool touched = false;   // allocator code used the line last
    Slot in_llc = kNoSlot;  // of a fill from there or from beyond
    Event l2 = Event::kNone;
    Event llc = Event::kNone;
  };

  // The common case here: TLB and L1 hit, the line is there or comes, and may be used as it is. All others:
  // access_slowly.
  template <Access kind>
  Reply access(unsigned core, Address address, Cycles at, Origin origin) {
    Side& side = sides_[core];
    Cache& l1 = kind == Access::kFetch ? side.l1i : side.l1d;
    Tlb& tlb = kind == Access::kFetch ? side.itlb : side.dtlb;
    ++l1.statistics.accesses[index_of(origin)][index_of(kind)];
    if (tlb.hit(address)) [[likely]] {
      const Slot slot = l1.find_noted(line_of(address));
      if (slot != kNoSlot) [[likely]] {
        Line& line = l1[slot];
        const Cycles ready = at + tlb.latency + l1.latency;
        const bool may = kind != Access::kStore || line.state >= State::kExclusive;
        if (may && !line.prefetched) [[likely]] {
          l1.use(slot);
          line.toucher = origin;
          if (kind == Access::kStore) line.state = State::kModified;
          if (line.ready <= ready) [[likely]]
            return {ready, Level::kL1, tlb.latency, 0};
          const Cache::Served served = l1.serve(line, ready, Level::kL1, origin);
          return {served.ready, served.level, tlb.latency, 0};
        }
      }
      return access_slowly(side, {line_of(address), kind, origin}, at, {tlb.latency, 0});
    }
    return access_slowly(side, address, kind, at, origin);
  }

  // From the translation on.
  Reply access_slowly(Side& side, Address address, Access kind, Cycles at, Origin origin);
  // From the L1 on.
  Reply access_slowly(Side& side, const Request& request, Cycles at, Translation translation);
  // After a miss in a first TLB: the second, the walk, the fault.
  Translation translate(Side& side, Tlb& tlb, Address address, Cycles at, Origin origin);
  // A hit in an L1; a miss. `at`: after the look-up.
  Fill hit(Side& side, Cache& l1, Slot slot, const Request& request, Cycles at);
  Fill miss(Side& side, Cache& l1, const Request& request, Cycles at);

  // A request comes to a level at a time, which is before the look-up there; it leaves the line in that level.
  Fill from_l2(Side& side, const Request& request, Cycles at);
  Fill from_llc(Side& side, const Request& request, Cycles at);
  // The last level has the line: asks other cores as needed. `at`: when the line is there.
  Fill from_directory(Side& side, Slot slot, const Request& request, Cycles at);
  // It does not: fetches it. `at`: after the look-up.
  Slot from_memory(const Request& request, Cycles at);

  void place_in_l1(Side& side, Cache& l1, const Request& request, const Fill& fill, Cycles at);
  void evict_from_l2(Side& side, Slot slot, Origin cause);
  void evict_from_llc(Slot slot, Origin cause, Cycles at);
  // Takes a line out of a core's L1s; what they know of it goes to the L2's line.
  void take_from_l1s(Side& side, Slot l2_slot);
  // Takes a line out of all caches of a core (to kInvalid), or leaves it there for reading (to kShared); what they know
  // of it goes to the last level's line. take_from: when that core had got it, or its rights.
  Cycles take_from(Side& side, Slot llc_slot);
  void downgrade(Side& side, Slot llc_slot);

  // Shows the prefetchers what a demand access met, and does what they say.
  void prefetch_after(Side& side, Cache& l1, const Request& request, Event l1_event, const Fill& fill, Cycles at);
  void prefetch_into_l1(Side& side, Cache& l1, const Request& request, Cycles at);
  void prefetch_into_l2(Side& side, const Request& request, Cycles at);
  void prefetch_into_llc(const Request& request, Cycles at);

  // The host may fetch its records of a line of the last level.
  void prepare(Slot llc_slot) const {
    __builtin_prefetch(&llc_[llc_slot], 1);
    __builtin_prefetch(&directory_[llc_slot], 1);
  }

  void count_share(Side& side, const Request& request, bool touched, Cycles beyond);

  Cycles transfer_;  // cycles: CoherenceParameters
  Cycles invalidate_;
  Cycles walk_;
  Cycles quantum_;
  std::array<Cycles, kFaults> fault_cycles_;

  bool prefetching_ = false;  // anywhere

  std::vector<Side> sides_;
  Cache llc_;
  std::vector<Entry> directory_;  // by slot of llc_
  Prefetcher llc_prefetcher_;
  Dram dram_;
  Pages pages_;
  LineSet touched_by_allocator_;  // last, and not in the last level, whose lines know themselves
};

}  // namespace annex::sim
