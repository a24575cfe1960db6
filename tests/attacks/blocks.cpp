// See blocks.h.
#include "blocks.h"

#include <algorithm>
#include <utility>

namespace attacks {

bool Blocks::take(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    char* block = size_ < kMost ? attacks::take(bytes_) : nullptr;
    if (block == nullptr) return false;
    add(block);
  }
  return true;
}

void Blocks::add(char* block) {
  if (size_ == kMost) return;
  blocks_[size_++] = block;
  if (bytes_ <= kWhole) return fill(block, owner_, bytes_);
  fill(block, owner_, kEnd);
  fill(block + bytes_ - kEnd, owner_, kEnd);
}

void Blocks::give(std::size_t index) {
  char* block = let_go(index);
  if (block != nullptr) attacks::give(block);
}

char* Blocks::let_go(std::size_t index) { return index < size_ ? std::exchange(blocks_[index], nullptr) : nullptr; }

void Blocks::give_all() {
  for (std::size_t i = 0; i < size_; ++i) give(i);
  size_ = 0;
}

bool Blocks::intact() const {
  return std::all_of(blocks_, blocks_ + size_, [this](const char* block) {
    if (block == nullptr) return true;
    if (bytes_ <= kWhole) return holds_only(block, owner_, bytes_);
    return holds_only(block, owner_, kEnd) && holds_only(block + bytes_ - kEnd, owner_, kEnd);
  });
}

bool Blocks::covers(const void* place, std::size_t bytes) const {
  return std::any_of(blocks_, blocks_ + size_,
                     [&](const char* block) { return block != nullptr && share_bytes(block, bytes_, place, bytes); });
}

std::size_t Blocks::nearest_behind(const char* place) const {
  std::size_t found = size_;
  for (std::size_t i = 0; i < size_; ++i) {
    if (blocks_[i] == nullptr || address(blocks_[i]) < address(place)) continue;
    if (found == size_ || address(blocks_[i]) < address(blocks_[found])) found = i;
  }
  return found;
}

}  // namespace attacks
