// What caches ask each other, and what they answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "machine/types.h"

namespace annex::sim {

// What served a request: the nearest place that had the line. kPeer: another core's cache, or the last level after
// other cores had to give up their copies.
enum class Level : uint8_t { kL1, kL2, kLlc, kPeer, kDram };
inline constexpr size_t kLevels = 5;

enum class Access : uint8_t { kLoad, kStore, kFetch };
inline constexpr size_t kAccesses = 3;

// MESI, in the order of their rights. In the last level: kModified if newer than memory, else kShared.
enum class State : uint8_t { kInvalid, kShared, kExclusive, kModified };

// Whose part a miss beyond a core's own caches was, as the papers ask: misses that allocation causes. kNone: no such
// miss. See attribution.h.
enum class Blame : uint8_t { kNone, kInside, kEvicted, kTouched, kEvictedAndTouched, kOther };
inline constexpr size_t kBlames = 6;

// A number for each part that a miss may be.
struct BlameCounts {
  std::array<uint64_t, kBlames> by = {};

  uint64_t& operator[](Blame blame) { return by[static_cast<size_t>(blame)]; }
  uint64_t operator[](Blame blame) const { return by[static_cast<size_t>(blame)]; }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("inside", self.by[1], "by the allocator's own accesses");
    visit("evicted", self.by[2], "by the program, on a line whose last eviction here an allocator's access caused");
    visit("touched", self.by[3], "by the program, on a line that allocator code of any core used last");
    visit("evicted_and_touched", self.by[4], "by the program, both");
    visit("other", self.by[5], "by the program, neither");
  }
};

// Who asks, for counting: the program, the allocator, or the kernel as it clears pages for one of them.
inline constexpr size_t kRequesters = 3;
inline constexpr size_t kKernel = 2;

using PerRequester = std::array<uint64_t, kRequesters>;
using PerAccess = std::array<std::array<uint64_t, kAccesses>, kRequesters>;  // [requester][access]

constexpr size_t index_of(Origin origin) { return static_cast<size_t>(origin); }
constexpr size_t index_of(Access access) { return static_cast<size_t>(access); }

inline constexpr uint8_t kAllWords = 8;
constexpr uint8_t word_of(Address address) { return address >> 3 & 7; }

struct Request {
  Address line;
  Access access;
  Origin origin;
  bool prefetch = false;
  bool kernel = false;       // on behalf of `origin`
  bool whole = false;        // a store of all 64 bytes, which need not be read before
  uint8_t word = kAllWords;  // of eight bytes in the line, that it is about

  bool demand() const { return !prefetch; }
  bool store() const { return access == Access::kStore; }
  size_t requester() const { return kernel ? kKernel : index_of(origin); }
};

// What prefetchers look at.
enum class Event : uint8_t { kNone, kMiss, kFirstUse };  // the last: of a prefetched line, by a demand access

// What a level gives to the one above it.
struct Fill {
  Cycles ready;
  Level level;
  State state;  // that the level above may take
  Blame blame = Blame::kNone;
  uint32_t in_llc = ~uint32_t{0};  // the line's slot, of a fill from there or from beyond
  Event l2 = Event::kNone;
  Event llc = Event::kNone;
};

}  // namespace annex::sim
