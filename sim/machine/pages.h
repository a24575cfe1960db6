// The program's pages: which regions it mapped, which pages are resident, what a first touch costs.
//
// Models: a page becomes resident at its first touch (a page fault); anonymous memory gets a page of 2 MiB where the
// policy or madvise allow it, the whole aligned 2 MiB lie in one region and none of it is resident. Giving back a part
// of a huge page splits it. Regions side by side and of one kind merge, as the kernel's do.
// Parameters: PageParameters (huge_pages; the costs are charged by memory_system.h).
// Simplifications: reads and writes fault alike (no zero page); no khugepaged, no fault-around, no swap, no limits; an
// address in no region counts as a file's. The kernel's clearing of new pages: memory_system.h.
//
// Times may come out of order by the quantum: a change before the latest counts as of the latest. The default time, 0,
// therefore means "now".
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/mmap_lock.h"
#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

// A hash table from page or chunk numbers to small values: open addressing, no removal.
template <class Value>
class AddressMap {
 public:
  struct Entry {
    Address key = kNoKey;
    Value value = {};
  };

  AddressMap() : entries_(kFirst) {}

  Value* find(Address key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  const Value* find(Address key) const {
    const Entry& entry = entries_[place_of(key)];
    return entry.key == key ? &entry.value : nullptr;
  }

  // The value of a key, which is entered if it is new.
  Value& at(Address key) {
    size_t place = place_of(key);
    if (entries_[place].key != key) {
      if ((count_ + 1) * 2 > entries_.size()) {
        grow();
        place = place_of(key);
      }
      entries_[place].key = key;
      ++count_;
    }
    return entries_[place].value;
  }

  size_t count() const { return count_; }
  void clear() {
    entries_.assign(kFirst, Entry{});
    count_ = 0;
  }

  // visit(key, value), in no useful order.
  template <class Visit>
  void each(Visit&& visit) {
    for (Entry& entry : entries_) {
      if (entry.key != kNoKey) visit(entry.key, entry.value);
    }
  }

 private:
  static constexpr Address kNoKey = ~Address{0};
  static constexpr size_t kFirst = 64;

  // Where the key is, or would be.
  size_t place_of(Address key) const {
    const size_t mask = entries_.size() - 1;
    size_t place = (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(entries_.size()));
    while (entries_[place].key != key && entries_[place].key != kNoKey) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (Entry& entry : old) {
      if (entry.key != kNoKey) entries_[place_of(entry.key)] = entry;
    }
  }

  size_t count_ = 0;
  std::vector<Entry> entries_;  // a power of two, at most half full
};

enum class PageKind : uint8_t { kAnonymous, kFile };

enum class Fault : uint8_t { kNone, kAnonymous, kFile, kHuge };
inline constexpr size_t kFaults = 4;

struct PageStatistics {
  std::array<std::array<uint64_t, kFaults>, 2> faults = {};  // [origin][fault]
  uint64_t given_back = 0;
  uint64_t huge_splits = 0;
  uint64_t peak_resident = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("faults", self.faults, "first touches of pages");
    visit("given_back", self.given_back, "bytes that were resident and were unmapped or dropped");
    visit("huge_splits", self.huge_splits, "pages of 2 MiB of which a part was given back");
    visit("peak_resident", self.peak_resident, "bytes, the most at any time");
  }
};

class Pages {
 public:
  struct Touched {
    Fault fault;
    bool huge;  // the page, now resident, is one of 2 MiB
  };

  explicit Pages(const Machine& machine);

  // An access to a page that no TLB knew.
  Touched touch(Address address, Cycles at, Origin origin) {
    const Chunk* chunk = resident_chunk(address);
    return chunk != nullptr ? Touched{owed(address), chunk->huge} : fault(address, at, origin);
  }
  // An access that will be run later: its page is resident from now on, and who touches it first has the fault.
  void touch_ahead(Address address, Cycles at, Origin origin) {
    if (resident_chunk(address) != nullptr) return;
    const Touched touched = fault(address, at, origin);
    owed_[touched.huge ? first_page_of_huge(address) : page_of(address)] = touched.fault;
  }
  // Such an access: a page that is not resident has been given back since.
  Touched touch_late(Address address) {
    const Chunk* chunk = resident_chunk(address);
    return chunk != nullptr ? Touched{owed(address), chunk->huge} : Touched{Fault::kNone, false};
  }

  // An anonymous page of 4 KiB whose first touch is still to come gets its memory without a fault; whether it did.
  bool back(Address address, Cycles at, Origin origin) {
    touch_ahead(address, at, origin);
    const auto found = owed_.find(page_of(address));
    if (found == owed_.end() || found->second != Fault::kAnonymous) return false;
    owed_.erase(found);
    --statistics.faults[static_cast<size_t>(origin)][static_cast<size_t>(Fault::kAnonymous)];
    return true;
  }

  // What the program asks of the kernel. Addresses are rounded outwards to pages of 4 KiB. Those that return a number:
  // how many resident pages, of either size, were given back. The caller then calls MemorySystem::shoot_down.
  uint64_t map(Address from, Address to, PageKind kind, Cycles at = 0);
  uint64_t unmap(Address from, Address to, Cycles at = 0);
  uint64_t drop(Address from, Address to, Cycles at = 0);  // MADV_DONTNEED: resident no more, mapped still
  void advise_huge(Address from, Address to, bool huge);   // MADV_HUGEPAGE, MADV_NOHUGEPAGE
  // mremap: pages keep their contents, so they stay resident at their new place; what was there, and a tail cut off, is
  // given back.
  uint64_t remap(Address from, uint64_t from_bytes, Address to, uint64_t to_bytes, Cycles at = 0);

  bool resident(Address address) const;
  // Whether an access would have no fault.
  bool present(Address address) const {
    return resident_chunk(address) != nullptr &&
           (owed_.empty() || (!owed_.contains(page_of(address)) && !owed_.contains(first_page_of_huge(address))));
  }
  // Of either size, of which a part lies there.
  uint64_t resident_pages(Address from, Address to);
  uint64_t resident_bytes() const { return resident_; }
  uint64_t mapped_bytes() const;
  // Mean over the time since the statistics were reset.
  double average_resident(Cycles until) const;

  void reset_statistics(Cycles at);

  PageStatistics statistics;
  MmapLock lock;  // of calls that change them, and of page faults

 private:
  static constexpr uint64_t kHugeBytes = uint64_t{1} << kHugePageShift;
  static constexpr unsigned kPagesInChunk = 1U << (kHugePageShift - kPageShift);

  enum class Advice : uint8_t { kNone, kHuge, kNoHuge };

  struct Region {
    Address to = 0;
    PageKind kind = PageKind::kAnonymous;
    Advice advice = Advice::kNone;
  };
  using Regions = std::map<Address, Region>;  // by their first address

  // 2 MiB, aligned.
  struct Chunk {
    std::array<uint64_t, kPagesInChunk / 64> bits = {};  // resident pages of 4 KiB
    bool huge = false;                                   // resident as one page: then all bits are set

    bool resident(Address page) const { return (bits[page / 64 % bits.size()] >> page % 64 & 1) != 0; }
    void set(Address page) { bits[page / 64 % bits.size()] |= uint64_t{1} << page % 64; }
    void clear(Address page) { bits[page / 64 % bits.size()] &= ~(uint64_t{1} << page % 64); }
    bool any() const;
  };

  // The chunk of an address whose page is resident; null where it is not.
  const Chunk* resident_chunk(Address address) const {
    const Chunk* chunk = chunks_.find(address >> kHugePageShift);
    return chunk != nullptr && chunk->resident(page_of(address)) ? chunk : nullptr;
  }
  Touched fault(Address address, Cycles at, Origin origin);
  // The fault of a page that touch_ahead() made resident, once.
  Fault owed(Address address) {
    if (owed_.empty()) [[likely]]
      return Fault::kNone;
    auto found = owed_.find(page_of(address));
    if (found == owed_.end()) {
      found = owed_.find(first_page_of_huge(address));
      if (found == owed_.end() || found->second != Fault::kHuge) return Fault::kNone;
    }
    const Fault fault = found->second;
    owed_.erase(found);
    return fault;
  }
  // visit(chunk, first, last): of each chunk that has resident pages in a range, the range's own pages in it.
  template <class Visit>
  void each_chunk(Address from, Address to, Visit&& visit);
  const Regions::value_type* region_of(Address address) const;
  bool huge_allowed(const Region& region) const;
  void cut(Address at);                  // splits the region that contains `at`, so that one starts there
  void merge(Regions::iterator region);  // with its neighbours, if alike
  void erase_regions(Address from, Address to);
  void insert_region(Address from, const Region& region);
  uint64_t give_back(Address from, Address to, Cycles at);
  void split(Chunk& chunk);
  void move_resident(Address from, Address to, uint64_t bytes);
  void pass_time(Cycles at);

  enum class Policy : uint8_t { kNever, kMadvise, kAlways };

  Policy policy_;
  Regions regions_;
  AddressMap<Chunk> chunks_;                 // by address >> kHugePageShift
  std::unordered_map<Address, Fault> owed_;  // by page; of a huge one by its first
  uint64_t resident_ = 0;                    // bytes
  Cycles changed_ = 0;                       // when resident_ last changed
  Cycles since_ = 0;                         // start of the statistics
  double byte_cycles_ = 0;                   // integral of resident_ from since_ to changed_
};

}  // namespace annex::sim
