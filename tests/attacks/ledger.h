// The blocks that are live at once, to notice at once when malloc hands out bytes of one of them again.
#pragma once

#include <algorithm>
#include <cstddef>

#include "heap.h"

namespace attacks {

class Ledger {
 public:
  // False where it shares a byte with one that is there; a block of no bytes counts as one.
  bool add(const char* block, std::size_t bytes) {
    const Range range = {address(block), address(block) + std::max<std::size_t>(bytes, 1)};
    Range* at = std::upper_bound(ranges_, ranges_ + size_, range,
                                 [](const Range& a, const Range& b) { return a.start < b.start; });
    if (at != ranges_ + size_ && at->start < range.end) return false;
    if (at != ranges_ && at[-1].end > range.start) return false;
    if (size_ == kMost) return true;
    std::copy_backward(at, ranges_ + size_, ranges_ + size_ + 1);
    *at = range;
    ++size_;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  struct Range {
    Word start;
    Word end;
  };

  std::size_t size_ = 0;
  Range ranges_[kMost];
};

}  // namespace attacks
