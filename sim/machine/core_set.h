// A set of cores: a bit for each of the most that a machine may have.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "machine/types.h"

namespace annex::sim {

class CoreSet {
 public:
  bool contains(unsigned core) const { return (words_[core / 64] >> core % 64 & 1) != 0; }
  void insert(unsigned core) { words_[core / 64] |= uint64_t{1} << core % 64; }
  void erase(unsigned core) { words_[core / 64] &= ~(uint64_t{1} << core % 64); }

  bool empty() const { return (words_[0] | words_[1]) == 0; }
  unsigned count() const { return static_cast<unsigned>(std::popcount(words_[0]) + std::popcount(words_[1])); }

  CoreSet without(unsigned core) const {
    CoreSet rest = *this;
    rest.erase(core);
    return rest;
  }

  // visit(core), from the lowest.
  template <class Visit>
  void each(Visit&& visit) const {
    for (unsigned i = 0; i < kWords; ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(i * 64 + static_cast<unsigned>(std::countr_zero(word)));
      }
    }
  }

  friend bool operator==(const CoreSet&, const CoreSet&) = default;

 private:
  static constexpr unsigned kWords = kMaxCores / 64;
  static_assert(kWords == 2 && kMaxCores % 64 == 0);

  std::array<uint64_t, kWords> words_ = {};
};

}  // namespace annex::sim
