// Blocks of one size that a part of the program holds, the attacker's or the victim's, each filled with its owner's
// byte.
#pragma once

#include <cstddef>

#include "heap.h"

namespace attacks {

class Blocks {
 public:
  static constexpr std::size_t kMost = 2048;

  explicit Blocks(std::size_t bytes, char owner = 'v') : bytes_(bytes), owner_(owner) {}
  Blocks(std::size_t bytes, char owner, std::size_t count) : Blocks(bytes, owner) { take(count); }

  bool take(std::size_t count = 1);  // as many as malloc has, and kMost allows: false where that is less
  void add(char* block);             // one that was allocated in another way
  void give(std::size_t index);      // its place stays, with nullptr
  char* let_go(std::size_t index);   // from now on it is not ours to look at
  void give_all();

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }
  char* operator[](std::size_t index) const { return blocks_[index]; }
  char* last() const { return blocks_[size_ - 1]; }

  bool intact() const;  // every block is as its owner filled it
  bool covers(const void* place, std::size_t bytes) const;
  // The held block that begins at or behind `place`, nearest to it; size() where there is none.
  std::size_t nearest_behind(const char* place) const;

 private:
  // Of a large block its two ends.
  static constexpr std::size_t kWhole = 8192;
  static constexpr std::size_t kEnd = 64;

  std::size_t bytes_;
  char owner_;
  std::size_t size_ = 0;
  char* blocks_[kMost];
};

}  // namespace attacks
