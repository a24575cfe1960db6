// The sizes of Mallacc's gauss, gauss_free and antagonist: nine in ten from 16 to 63 bytes, one in ten from 256 to 511,
// none between, as its published code draws them (its text speaks of normal distributions; the code's are uniform).

#pragma once

#include "block.h"

namespace workload {

inline uint32_t gauss_size(Random& random) {
  const uint64_t bits = random.next();
  const auto position = static_cast<uint32_t>(bits >> 32);
  if (static_cast<uint32_t>(bits) % 10 < 9) return 16 + position % 48;
  return 256 + position % 256;
}

// The blocks of one pass of gauss_free. Each step allocates one, then picks any of those allocated so far and frees it
// unless that was done before: about half of all steps free, and half of the blocks live on to the end of the pass.
class GaussTable {
 public:
  explicit GaussTable(uint64_t steps) { blocks_.reserve(steps); }
  ~GaussTable() { clear(); }
  GaussTable(const GaussTable&) = delete;
  GaussTable& operator=(const GaussTable&) = delete;

  void step(Random& random) {
    blocks_.push_back(new_block(gauss_size(random), static_cast<uint32_t>(blocks_.size())));
    Block*& victim = blocks_[random.below(static_cast<uint32_t>(blocks_.size()))];
    if (victim == nullptr) return;
    sum_ += free_block(victim);
    victim = nullptr;
  }

  // Frees what is left; returns the bytes of all blocks of the pass.
  uint64_t clear() {
    for (Block* block : blocks_) {
      if (block != nullptr) sum_ += free_block(block);
    }
    blocks_.clear();
    return sum_;
  }

 private:
  std::vector<Block*> blocks_;
  uint64_t sum_ = 0;
};

}  // namespace workload
