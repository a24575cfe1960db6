// One translation buffer: which pages a core can translate without a walk.
//
// Models: set-associative, least recently used; pages of 4 KiB and 2 MiB share the entries, each in the set that the
// low bits of its own page number choose. Translations themselves are not kept: caches are indexed by virtual address.
// Parameters: TlbParameters (entries, ways, latency).
// Simplifications: one address space, so no flushes on a switch; no entries for the upper levels of the page table,
// which have caches of their own (page_walker.h); both sizes are looked up at once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

struct TlbStatistics {
  std::array<uint64_t, 2> misses = {};  // [origin]
  uint64_t shot_down = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("misses", self.misses, "look-ups that did not find the page");
    visit("shot_down", self.shot_down, "entries removed because their pages were unmapped or dropped");
  }
};

class Tlb {
 public:
  enum class Found : uint8_t { kNo, kSmall, kHuge };

  explicit Tlb(const TlbParameters& parameters)
      : latency(parameters.latency),
        ways_(parameters.ways),
        set_mask_(parameters.entries / parameters.ways - 1),
        keys_(parameters.entries, kNoKey),
        used_(parameters.entries),
        hints_(std::min<size_t>(std::bit_ceil(parameters.entries) * size_t{4}, kMostHints)),
        hint_mask_(hints_.size() - 1) {}

  // Looks an address up, in one step if its page was found before and often enough: false may mean "ask search".
  bool hit(Address address) {
    const uint32_t entry = hints_[page_of(address) & hint_mask_];
    const uint64_t key = keys_[entry];
    if (key != key_of(address, 0) && key != key_of(address, 1)) return false;
    used_[entry] = ++uses_;
    return true;
  }

  // Looks an address up and says of what size its page is. Both make its entry the most recently used.
  Found search(Address address) {
    for (uint64_t huge = 0; huge <= (any_huge_ ? 1U : 0U); ++huge) {
      const uint64_t key = key_of(address, huge);
      const uint32_t first = first_of(key);
      uint32_t found = kNoEntry;
      for (uint32_t entry = first; entry < first + ways_; ++entry) found = keys_[entry] == key ? entry : found;
      if (found == kNoEntry) continue;
      note(address, found);
      return huge != 0 ? Found::kHuge : Found::kSmall;
    }
    return Found::kNo;
  }

  // Enters the page of an address that was not found, in the place of the least recently used of its set.
  void insert(Address address, bool huge) {
    const uint64_t key = key_of(address, huge ? 1 : 0);
    const uint32_t first = first_of(key);
    uint64_t least = ~uint64_t{0};  // of (when used, way)
    for (uint32_t way = 0; way < ways_; ++way) least = std::min(least, used_[first + way] << kWayBits | way);
    const uint32_t oldest = first + static_cast<uint32_t>(least & ((1U << kWayBits) - 1));
    keys_[oldest] = key;
    any_huge_ = any_huge_ || huge;
    note(address, oldest);
  }

  // Removes the entries of all pages that [from, to) touches.
  void shoot_down(Address from, Address to) {
    if (to <= from) return;
    // Few pages: their sets; many: all entries.
    if (!any_huge_ && (page_of(to - 1) - page_of(from) + 1) * ways_ < keys_.size()) {
      for (Address page = page_of(from); page <= page_of(to - 1); ++page) {
        const uint32_t first = first_of(page << 1);
        for (uint32_t entry = first; entry < first + ways_; ++entry) {
          if (keys_[entry] == page << 1) remove(entry);
        }
      }
      return;
    }
    for (uint32_t entry = 0; entry < keys_.size(); ++entry) {
      if (keys_[entry] == kNoKey) continue;
      const unsigned shift = (keys_[entry] & 1) != 0 ? kHugePageShift : kPageShift;
      const Address page = keys_[entry] >> 1;
      if (page >= from >> shift && page <= (to - 1) >> shift) remove(entry);
    }
  }

  void clear() {
    std::fill(keys_.begin(), keys_.end(), kNoKey);
    std::fill(used_.begin(), used_.end(), 0);
    uses_ = 0;
    any_huge_ = false;
    statistics = {};
  }

  uint32_t latency;  // cycles
  TlbStatistics statistics;

 private:
  static constexpr uint64_t kNoKey = ~uint64_t{0};
  static constexpr unsigned kWayBits = 20;  // TlbParameters allow 2^20 ways
  static constexpr uint32_t kNoEntry = ~uint32_t{0};
  static constexpr size_t kMostHints = 4096;

  // The number of a page of its size, and the size in bit 0.
  static uint64_t key_of(Address address, uint64_t huge) {
    return (huge != 0 ? address >> kHugePageShift : page_of(address)) << 1 | huge;
  }
  uint32_t first_of(uint64_t key) const { return static_cast<uint32_t>((key >> 1) & set_mask_) * ways_; }

  void note(Address address, uint32_t entry) {
    used_[entry] = ++uses_;
    hints_[page_of(address) & hint_mask_] = entry;
  }

  void remove(uint32_t entry) {
    keys_[entry] = kNoKey;
    used_[entry] = 0;
    ++statistics.shot_down;
  }

  uint64_t uses_ = 0;
  uint32_t ways_;
  uint32_t set_mask_;
  bool any_huge_ = false;  // since it was cleared: else no second look-up is needed
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> used_;   // the count of uses when it was used last; 0: empty
  std::vector<uint32_t> hints_;  // entries by 4 KiB page, checked before use: see Cache
  size_t hint_mask_;
};

}  // namespace annex::sim
