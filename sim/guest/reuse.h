// How a program reuses its lines: of each access, how many other lines were touched since the last one to its line (its
// reuse distance; Mattson, Gecsei, Slutz and Traiger, 1970). And lines that are as far back as such accesses reach.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "machine/pages.h"
#include "machine/types.h"

namespace annex::sim {

// Lines by when they were last touched. Of more than half of `slots` lines the oldest are forgotten.
class ReuseStack {
 public:
  explicit ReuseStack(uint32_t slots = uint32_t{1} << 19) : lines_(slots), counts_(slots + 1) {}

  // The line becomes the latest; how many others were touched since it was, or none where it is new.
  std::optional<uint32_t> touch(Address line) {
    if (next_ == lines_.size()) compact();
    uint32_t& slot = slots_.at(line);  // and one, 0: none
    std::optional<uint32_t> distance;
    if (slot != 0 && lines_[slot - 1] == line) {
      distance = live_ - up_to(slot);
      remove(slot - 1);
    }
    lines_[next_] = line;
    add(next_, 1);
    ++live_;
    slot = ++next_;
    return distance;
  }

  // The one since whose touch so many others were touched; the oldest, where there are not so many. There is one.
  Address at(uint32_t distance) const {
    uint32_t left = live_ - (distance < live_ ? distance : live_ - 1);
    uint32_t place = 0;
    for (uint32_t step = std::bit_floor(static_cast<uint32_t>(lines_.size())); step != 0; step /= 2) {
      if (place + step > lines_.size() || counts_[place + step] >= left) continue;
      place += step;
      left -= counts_[place];
    }
    return lines_[place];
  }

  uint32_t size() const { return live_; }

 private:
  static constexpr Address kGone = ~Address{0};

  // A Fenwick tree of how many slots hold a line.
  uint32_t up_to(uint32_t count) const {
    uint32_t sum = 0;
    for (; count != 0; count &= count - 1) sum += counts_[count];
    return sum;
  }
  void add(uint32_t slot, int32_t by) {
    for (uint32_t i = slot + 1; i < counts_.size(); i += i & -i) counts_[i] += static_cast<uint32_t>(by);
  }
  void remove(uint32_t slot) {
    lines_[slot] = kGone;
    add(slot, -1);
    --live_;
  }
  void compact() {
    const std::vector<Address> before = std::move(lines_);
    lines_.assign(before.size(), 0);
    counts_.assign(counts_.size(), 0);
    uint32_t surplus = live_ > before.size() / 2 ? live_ - static_cast<uint32_t>(before.size() / 2) : 0;
    next_ = live_ = 0;
    for (const Address line : before) {
      if (line == kGone) continue;
      uint32_t& slot = slots_.at(line);
      slot = 0;
      if (surplus > 0) {
        --surplus;
        continue;
      }
      lines_[next_] = line;
      add(next_, 1);
      slot = ++next_;
      ++live_;
    }
  }

  std::vector<Address> lines_;    // by slot, in the order of their last touches
  std::vector<uint32_t> counts_;  // the tree, from 1 on
  AddressMap<uint32_t> slots_;    // by line, and one
  uint32_t next_ = 0;
  uint32_t live_ = 0;
};

// How often which distance occurred: exact below 16, then in eight steps to the double.
class ReuseDistances {
 public:
  void add(std::optional<uint32_t> distance) {
    ++counts_[distance ? bin_of(*distance) : kBins - 1];
    ++all_;
  }
  uint64_t count() const { return all_; }

  // One of them, by two random numbers: each as often as it occurred. A new line's is the longest there is.
  uint32_t drawn(uint64_t which, uint64_t within) const {
    uint64_t left = which % all_;
    uint32_t bin = 0;
    while (left >= counts_[bin]) left -= counts_[bin++];
    if (bin == kBins - 1) return ~uint32_t{0};
    const uint32_t from = start_of(bin);
    return from + static_cast<uint32_t>(within % (start_of(bin + 1) - from));
  }

 private:
  static constexpr uint32_t kExact = 16;
  static constexpr uint32_t kSteps = 8;
  static constexpr uint32_t kBins = kExact + 28 * kSteps + 1;

  static uint32_t bin_of(uint32_t distance) {
    if (distance < kExact) return distance;
    const auto shift = static_cast<uint32_t>(std::bit_width(distance)) - 4;
    return kExact + (shift - 1) * kSteps + (distance >> shift & (kSteps - 1));
  }
  static uint32_t start_of(uint32_t bin) {
    if (bin <= kExact) return bin;
    return (kSteps + (bin - kExact) % kSteps) << ((bin - kExact) / kSteps + 1);
  }

  std::array<uint64_t, kBins> counts_{};  // the last: of new lines
  uint64_t all_ = 0;
};

}  // namespace annex::sim
