// Everything between the cores and their data, as a core sees it: an address is translated (tlb.h, page_walker.h), its
// page may have to be made (pages.h), and its line comes from the core's own caches (private_caches.h) or from what
// cores share (last_level.h). Beside that path: whose part the misses are (attribution.h).
//
// Here: the order of these steps; page walks and faults, with the kernel's clearing of new pages; locked instructions.
// Parameters: all of Machine's caches, TLBs, coherence, dram and pages.
// Simplifications: the allocator's and program's lines stay cached when their pages are unmapped; a page lies in memory
// where its virtual address says, or (pages.frames) in a frame that a fixed permutation gives it, for good.
//
// Simulated times of cores differ by up to Machine::quantum, and requests come in the order of simulation. cache.h,
// dram.h and last_level.h say for each resource how that is kept harmless: nobody waits for what began later than
// itself, except that a queue which is busy without a break is joined at its end.
// One host thread at a time calls this. The statistics as JSON: memory_system_json.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine/attribution.h"
#include "machine/last_level.h"
#include "machine/page_walker.h"
#include "machine/pages.h"
#include "machine/parameters.h"
#include "machine/private_caches.h"
#include "machine/tlb.h"
#include "machine/types.h"

namespace annex::sim {

struct Reply {
  Cycles ready;  // when the data are here; of a store: when the line is the core's own and written
  Level level;
  Blame blame;
  Cycles translation;  // of ready - at: TLBs and page walk
  Cycles fault;        // of ready - at: the page fault
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
  // A locked instruction's access. Done at the core, it keeps the line for `hold` cycles after it is ready; done at the
  // last level (far_atomics()), it is over when it is ready.
  Reply lock(unsigned core, Address address, Cycles at, Cycles hold, Origin origin);
  bool far_atomics() const { return far_atomics_; }
  // By software, into the L1, as a load or a store that nobody waits for; it counts as one. False: dropped, as its page
  // is not there.
  bool prefetch(unsigned core, Address address, Cycles at, Origin origin, bool to_write) {
    if (!sides_[core]->dtlb.hit(address) && !pages_.present(address)) return false;
    to_write ? store(core, address, at, origin) : load(core, address, at, origin);
    return true;
  }

  // Of a unit's own memory, which no cache has: a line written, and read.
  void write_uncached(Address address, Cycles at) { last_level_.write_around(frame_line(address), at); }
  void read_uncached(Address address, Cycles at) { last_level_.read_around(frame_line(address), at); }

  // Whether a core's store to the address, not written yet, may still be forwarded to its loads.
  bool last_writer(unsigned core, Address address) const {
    return sides_[core]->caches.last_writer(frame_line(address), word_of(address));
  }

  // What a core runs from now on was captured, and its pages touched, before; or no longer.
  void run_late(unsigned core, bool late) { sides_[core]->late = late; }
  // Hardware gives an anonymous page of 4 KiB its memory, if its first touch is still to come: no page fault then, its
  // cleared lines are in the core's caches, and no time passes. Whether it did.
  bool back(unsigned core, Address address, Cycles at, Origin origin);

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
  State state_of(unsigned core, Address address) const { return sides_[core]->caches.state_of(frame_line(address)); }
  bool cached(unsigned core, Address address) const { return sides_[core]->caches.contains(frame_line(address)); }
  bool in_llc(Address address) const { return last_level_.find(frame_line(address)) != kNoSlot; }
  const PrivateCaches& caches(unsigned core) const { return sides_[core]->caches; }
  const CacheStatistics& l1i(unsigned core) const { return caches(core).l1i.statistics; }
  const CacheStatistics& l1d(unsigned core) const { return caches(core).l1d.statistics; }
  const CacheStatistics& l2(unsigned core) const { return caches(core).l2->statistics; }  // of a core with one
  const CacheStatistics& llc() const { return last_level_.cache().statistics; }
  const DramStatistics& dram() const { return last_level_.dram().statistics; }
  const CoherenceStatistics& coherence(unsigned core) const { return last_level_.coherence(core); }
  uint64_t communications() const { return last_level_.communications(); }
  const Attribution& attribution() const { return attribution_; }
  const TlbStatistics& itlb(unsigned core) const { return sides_[core]->itlb.statistics; }
  const TlbStatistics& dtlb(unsigned core) const { return sides_[core]->dtlb.statistics; }
  const TlbStatistics& stlb(unsigned core) const { return sides_[core]->stlb.statistics; }
  const WalkerStatistics& walker(unsigned core) const { return sides_[core]->walker.statistics; }
  // What is wrong with inclusion and the directory, a line each; empty: nothing. Slow.
  std::vector<std::string> inconsistencies() const;

 private:
  // What belongs to one core.
  struct Side {
    Side(const CoreKind& kind, unsigned core, LastLevel& last_level, Attribution& attribution)
        : caches(kind, core, last_level, attribution),
          itlb(kind.itlb),
          dtlb(kind.dtlb),
          stlb(kind.stlb),
          walker(kind.walker) {}

    bool late = false;  // what it runs was captured, and its pages touched, before: no thread runs there
    PrivateCaches caches;
    Tlb itlb;
    Tlb dtlb;
    Tlb stlb;
    PageWalker walker;
  };
  struct Translation {
    Cycles cycles;
    Cycles fault;
  };
  enum class Clearing : uint8_t { kNone, kAllocate, kFetch, kNonTemporal };

  template <Access kind>
  Reply access(unsigned core, Address address, Cycles at, Origin origin) {
    Side& side = *sides_[core];
    Cache& l1 = kind == Access::kFetch ? side.caches.l1i : side.caches.l1d;
    Tlb& tlb = kind == Access::kFetch ? side.itlb : side.dtlb;
    ++l1.statistics.accesses[index_of(origin)][index_of(kind)];
    if (tlb.hit(address)) [[likely]] {
      Fill fill;
      const Address line = frame_line(address);
      if (side.caches.hit<kind>(line, origin, at + tlb.latency, fill)) [[likely]] {
        return {fill.ready, fill.level, fill.blame, tlb.latency, 0};
      }
      return access_slowly(side, {.line = line, .access = kind, .origin = origin, .word = word_of(address)}, at,
                           {tlb.latency, 0});
    }
    return access_slowly(side, address, kind, at, origin);
  }
  // The line in memory, by which caches know it, and its page's frame.
  Address frame_of(Address page) const { return scattered_ ? scattered_frame(page) : page; }
  Address frame_line(Address address) const {
    constexpr unsigned kShift = kPageShift - kLineShift;
    return frame_of(page_of(address)) << kShift | (line_of(address) & ((Address{1} << kShift) - 1));
  }

  // From the translation on; from the L1 on.
  Reply access_slowly(Side& side, Address address, Access kind, Cycles at, Origin origin);
  Reply access_slowly(Side& side, const Request& request, Cycles at, Translation translation);

  // After a miss in a first TLB: the second, the walk, the fault.
  Translation translate(Side& side, Tlb& tlb, Address address, Cycles at, Origin origin);
  // A walk that reads the page table, through the core's own L1D: how long it takes.
  Cycles walk_tables(Side& side, Address address, bool huge, Cycles at, Origin origin);
  // A page fault: how long it takes once the lock of the memory map is had.
  Cycles fault(Side& side, Address address, Fault fault, Cycles at, Origin origin);
  // The kernel clears the new page of an address: how long that takes.
  Cycles clear_page(Side& side, Address address, bool huge, Cycles at, Origin origin);

  Cycles walk_;
  std::array<Cycles, kFaults> fault_cycles_;
  Clearing clearing_;
  Cycles clear_line_;
  bool far_atomics_;
  bool scattered_;

  Attribution attribution_;
  LastLevel last_level_;
  std::vector<std::unique_ptr<Side>> sides_;
  Pages pages_;
};

}  // namespace annex::sim
