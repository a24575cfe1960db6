// A core's own caches: L1I, L1D, and an L2 that contains both, where the core has one.
//
// Models: MESI; the core's state of a line is the higher of its L1D's and its L2's. Latencies add level by level; an L1
// hit with enough rights takes the L1's latency. A line that is on its way is present, and its users wait for it
// (cache.h). Without an L2, L1 misses go to the last level, and evictions from the L1s to it.
// What another core takes while it is still on its way here goes there when it has come and served the accesses that
// wait for it: those issued until then are merged with the request that they wait for, but for those to the word that
// the other writes, which the program has done before them. Parameters: CoreKind (l1i, l1d, l2), with the prefetchers.
// Simplifications: evictions and write-backs take no time; an upgrade holds loads of the same core up as well; a core's
// stores do not take lines out of its own L1I.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "machine/attribution.h"
#include "machine/cache.h"
#include "machine/last_level.h"
#include "machine/parameters.h"
#include "machine/prefetcher.h"
#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

class PrivateCaches final : public Holder {
 public:
  PrivateCaches(const CoreKind& kind, unsigned core, LastLevel& last_level, Attribution& attribution);

  // The common case: the L1 has the line, it is there or comes, and may be used as it is. False: nothing happened, and
  // access() does it. `at` is before the look-up.
  template <Access kind>
  bool hit(Address line, Origin origin, Cycles at, Fill& fill) {
    Cache& l1 = kind == Access::kFetch ? l1i : l1d;
    const Slot slot = l1.find_noted(line);
    if (slot == kNoSlot) [[unlikely]]
      return false;
    Line& found = l1[slot];
    if ((kind == Access::kStore && found.state < State::kExclusive) || found.prefetched) [[unlikely]]
      return false;
    l1.use(slot);
    if (found.user != origin) [[unlikely]]
      used(found, line, origin);
    if (kind == Access::kStore) found.state = State::kModified;
    const Cycles ready = at + l1.latency;
    if (found.ready <= ready) [[likely]] {
      fill = {ready, Level::kL1, found.state};
    } else {
      fill = l1.serve(found, ready, Level::kL1, index_of(origin));
    }
    return true;
  }

  // Any access, from the L1's look-up on.
  Fill access(const Request& request, Cycles at);
  Answer take(Address line, uint8_t word) override;
  Answer share(Address line) override;

  // Whether a store of this core's that isn't written yet is still the last one to its address: not where another core
  // has taken the line to write the same word. (Of several that have taken it since, the first is known.)
  bool last_writer(Address line, uint8_t word) const {
    if (contains(line)) return true;
    const Promised& found = promised_[line % kPromised];
    return found.line == line && found.word != word && found.word != kAllWords;
  }

  State state_of(Address line) const;  // the higher of L1D's and L2's
  bool contains(Address line) const;   // in any of them
  void inconsistencies(std::vector<std::string>& problems) const;

  void clear();
  void reset_statistics();

  const unsigned number;
  Cache l1d;
  Cache l1i;
  std::optional<Cache> l2;
  Prefetcher l1d_prefetcher;
  Prefetcher l1i_prefetcher;
  Prefetcher l2_prefetcher;

 private:
  Fill l1_hit(Cache& l1, Slot slot, const Request& request, Cycles at);
  Fill l1_miss(Cache& l1, const Request& request, Cycles at);
  void place_in_l1(Cache& l1, const Request& request, const Fill& fill, Cycles at);
  void evict_from_l1(Cache& l1, Slot slot, const Request& cause);

  // An L1 wants a line, or the right to write it: from the L2, or where there is none from the last level. `at` is
  // before the look-up there.
  Fill from_below(const Request& request, Cycles at);
  Fill from_l2(const Request& request, Cycles at);
  // A miss of the core's outermost cache.
  Fill from_last_level(const Request& request, Cycles at, Cycles looked_up);
  void evict_from_l2(Slot slot, const Request& cause);
  // Takes a line out of the L1s: whether one had newer data.
  bool take_from_l1s(Address line);

  Prefetcher& prefetcher_of(const Cache& l1) { return &l1 == &l1d ? l1d_prefetcher : l1i_prefetcher; }
  bool miss_available(Address line, Cycles at) const;
  // Shows the prefetchers what a demand access met, and does what they say.
  void prefetch_after(Cache& l1, const Request& request, Event l1_event, const Fill& fill, Cycles at);
  void prefetch_into_l1(Cache& l1, const Request& request, Cycles at);
  void prefetch_into_l2(const Request& request, Cycles at);

  void used(Line& line, Address number_of_line, Origin origin) {
    line.user = origin;
    attribution_.used(number_of_line, origin);
  }

  // A line that another core has taken, and that was or is on its way here: until then it is this core's still.
  struct Promised {
    Address line = ~Address{0};
    uint8_t word = kAllWords;  // that the other writes
    Fill fill = {0, Level::kL1, State::kInvalid};
  };
  static constexpr size_t kPromised = 16;

  void promise(Address number_of_line, uint8_t word) {
    const Slot slot = l1d.find(number_of_line);
    if (slot == kNoSlot) return;
    const Line& line = l1d[slot];
    promised_[number_of_line % kPromised] = {number_of_line, word, {line.ready, line.source, line.state, line.blame}};
  }
  // What a demand access at `at` may be merged with; null: nothing.
  const Fill* promised(const Request& request, Cycles at) const {
    const Promised& found = promised_[request.line % kPromised];
    if (found.line != request.line || at >= found.fill.ready || request.prefetch) return nullptr;
    if (found.word == kAllWords || found.word == request.word) return nullptr;
    return request.store() && found.fill.state < State::kExclusive ? nullptr : &found.fill;
  }

  LastLevel& last_level_;
  Attribution& attribution_;
  std::array<Promised, kPromised> promised_ = {};  // by line
  const bool prefetching_;                         // anywhere
  std::vector<Slot> in_llc_;  // by slot of the L2: its line's in the last level, which keeps it for as long
};

}  // namespace annex::sim
