// Free runs by length, so that the smallest one that fits is found in a few steps.
//
// Lengths (in granules) up to 32 have a bin each; above, four bins per doubling. Within a bin the newest comes first:
// it is the most likely to be in the caches.
//
// Synchronization: the page heap's lock.
#pragma once

#include <cstdint>

#include "pages/granule.h"

namespace annex {

inline constexpr uint32_t kExactBins = 32;
inline constexpr uint32_t kLongestRun = (1u << 29) - 1;  // granules

constexpr uint32_t run_bin(uint32_t length) {
  if (length <= kExactBins) return length - 1;
  const uint32_t log2 = 31 - static_cast<uint32_t>(__builtin_clz(length));
  return kExactBins + (log2 - 5) * 4 + ((length >> (log2 - 2)) & 3);
}

class RunBins {
 public:
  void insert(FreeRun* run) {
    const uint32_t bin = run_bin(run->length);
    run->previous = nullptr;
    run->next = first_[bin];
    if (run->next != nullptr) run->next->previous = run;
    first_[bin] = run;
    occupied_[bin / 64] |= uint64_t{1} << (bin % 64);
  }

  void remove(FreeRun* run) {
    if (run->next != nullptr) run->next->previous = run->previous;
    if (run->previous != nullptr) {
      run->previous->next = run->next;
      return;
    }
    const uint32_t bin = run_bin(run->length);
    first_[bin] = run->next;
    if (run->next == nullptr) occupied_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  }

  // A run of at least `length` granules, close to the shortest; nullptr where there is none. It stays in its bin.
  FreeRun* find(uint32_t length) const {
    const uint32_t bin = run_bin(length);
    FreeRun* best = nullptr;
    // In a bin of several lengths: the best of the first few.
    int looked_at = 0;
    for (FreeRun* run = first_[bin]; run != nullptr && looked_at < kLook; run = run->next, ++looked_at) {
      if (run->length >= length && (best == nullptr || run->length < best->length)) best = run;
      if (bin < kExact) break;
    }
    if (best != nullptr) return best;
    for (uint32_t above = bin + 1; above < kBins; above = (above / 64 + 1) * 64) {
      const uint64_t word = occupied_[above / 64] >> (above % 64);
      if (word != 0) return first_[above + static_cast<uint32_t>(__builtin_ctzl(word))];
    }
    return nullptr;
  }

  // One of the longest; nullptr where there is none.
  FreeRun* longest() const {
    for (uint32_t word = kBins / 64; word-- > 0;) {
      if (occupied_[word] != 0) return first_[word * 64 + 63 - static_cast<uint32_t>(__builtin_clzl(occupied_[word]))];
    }
    return nullptr;
  }

 private:
  static constexpr uint32_t kExact = kExactBins;
  static constexpr uint32_t kBins = 128;
  static constexpr int kLook = 16;
  static_assert(run_bin(kExact) == kExact - 1 && run_bin(kExact + 1) == kExact && run_bin(kLongestRun) < kBins);

  FreeRun* first_[kBins] = {};
  uint64_t occupied_[kBins / 64] = {};
};

}  // namespace annex
