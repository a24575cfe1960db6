// What walks the page table of a core: which entries a translation must read that no buffer has, and when.
//
// Models: the four levels of x86-64's tables (Intel SDM 3A, 4.5), each a page of 512 entries of 8 bytes; a walk reads
// one entry of each, from the top, and of a page of 2 MiB none of the lowest. Caches of upper levels (SDM 4.10.3) let
// it begin where a table's place is known already: one a level, for 512 GiB, 1 GiB and 2 MiB. A few walks go on at a
// time. On a virtual machine (`nested tables`) a table's own address, and that of the data, has to be walked for in the
// hypervisor's tables as well (SDM 3C, 29.3); of these the lowest level is read, and what is above it is taken to be
// cached. Parameters: WalkerParameters (reads, walkers, entries). With `reads = "nothing"` a walk takes PageParameters'
// walk. Simplifications: no accessed and dirty bits; tables lie where a page's number says, side by side, in the
// kernel's half of the addresses; the hypervisor's pages are of 4 KiB, and no buffer keeps what they translate to; who
// brings a page in (the kernel, at a fault) does not write its entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "machine/cache.h"
#include "machine/parameters.h"
#include "machine/tlb.h"
#include "machine/types.h"

namespace annex::sim {

struct WalkerStatistics {
  uint64_t reads = 0;
  uint64_t waited = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("reads", self.reads, "entries of page tables that walks read");
    visit("waited", self.waited, "cycles that walks waited for one of the walkers");
  }
};

class PageWalker {
 public:
  explicit PageWalker(const WalkerParameters& parameters)
      : reads_(parameters.reads != "nothing"),
        nested_(parameters.reads == "nested tables"),
        walkers_(parameters.walkers),
        upper_{cache_of(parameters), cache_of(parameters), cache_of(parameters)} {}

  // Whether walks read anything: else they take a constant.
  bool reads() const { return reads_; }

  // A walk for an address whose page is of that size, from `at` on: when it is done. `read(address, at)` reads an entry
  // of a table, by its own (virtual) address, and says when it is there; `frame_of(page)`: where in memory a page lies.
  template <class FrameOf, class Read>
  Cycles walk(Address address, bool huge, Cycles at, FrameOf&& frame_of, Read&& read) {
    const Mshrs::Grant grant = walkers_.acquire(at);
    statistics.waited += grant.start - at;
    Cycles now = grant.start;
    const auto entry_at = [&](Address entry) {
      ++statistics.reads;
      now = read(entry, now);
    };
    const unsigned lowest = huge ? 2 : 1;
    for (unsigned level = known_from(address, lowest); level >= lowest; --level) {
      const Address entry = entry_of(level, page_of(address));
      if (nested_) entry_at(entry_of(kHypervisor, frame_of(page_of(entry))));
      entry_at(entry);
      if (level > lowest) learn(address, level);
    }
    if (nested_) entry_at(entry_of(kHypervisor, frame_of(page_of(address))));
    walkers_.hold(grant, now);
    return now;
  }

  // A page was unmapped: the processor forgets all upper levels (SDM 4.10.4.1, INVLPG).
  void forget() {
    for (Tlb& level : upper_) level.clear();
  }
  void clear() {
    forget();
    walkers_.clear();
    statistics = {};
  }

  // The address of the entry for a page (by its number) in a level's tables, 1 to 4 from the lowest.
  static constexpr unsigned kHypervisor = 5;
  static constexpr Address entry_of(unsigned level, Address page) {
    constexpr unsigned kBits = 9;  // 512 entries
    constexpr unsigned kEntry = 3;
    const Address index = page >> (level == kHypervisor ? 0 : kBits * (level - 1));
    return kTables | Address{level} << kLevelShift | index << kEntry;
  }

  WalkerStatistics statistics;

 private:
  // Of 48 bits of address, the upper half is the kernel's: no program's page is there.
  static constexpr Address kTables = Address{1} << 47;
  static constexpr unsigned kLevelShift = 40;  // a level's entries: 2^36 pages x 8 bytes at most

  static Tlb cache_of(const WalkerParameters& parameters) {
    return Tlb({.entries = parameters.entries, .ways = parameters.entries, .latency = 0});
  }
  // Of a cache, the address under which it knows the table that an entry of `level` says the place of: a Tlb's pages of
  // 2 MiB stand for regions of 2 MiB, 1 GiB and 512 GiB.
  static Address region_of(Address address, unsigned level) { return address >> (9 * (level - 2)); }

  // The level at which the walk begins: just below the lowest entry that is known.
  unsigned known_from(Address address, unsigned lowest) {
    for (unsigned level = lowest + 1; level <= kLevels; ++level) {
      if (upper_[level - 2].search(region_of(address, level)) != Tlb::Found::kNo) return level - 1;
    }
    return kLevels;
  }
  void learn(Address address, unsigned level) {
    Tlb& cache = upper_[level - 2];
    if (cache.search(region_of(address, level)) == Tlb::Found::kNo) cache.insert(region_of(address, level), true);
  }

  static constexpr unsigned kLevels = 4;

  bool reads_;
  bool nested_;
  Mshrs walkers_;             // as registers of misses: so many at a time
  std::array<Tlb, 3> upper_;  // of levels 2, 3 and 4
};

}  // namespace annex::sim
