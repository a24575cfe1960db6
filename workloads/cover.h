// Sets of cubes over boolean variables in positional notation, each cube a block of its own: the data structure of a
// two-level logic minimizer. A variable takes two bits of a cube: bit 0 "may be false", bit 1 "may be true".

#pragma once

#include <utility>

#include "workload.h"

namespace workload {

inline uint32_t g_variables;  // of the function being minimized
inline uint32_t g_words;      // 64-bit words in a cube

using Cube = uint64_t;  // the first of g_words

inline constexpr uint32_t kPerWord = 32;  // variables in a word
inline constexpr uint64_t kFalseBits = 0x5555555555555555u;

inline Cube* new_cube() {
  auto* cube = static_cast<Cube*>(malloc(g_words * sizeof(uint64_t)));
  require(cube != nullptr, "malloc returned null");
  return cube;
}

inline Cube* copy_of(const Cube* cube) {
  Cube* copy = new_cube();
  memcpy(copy, cube, g_words * sizeof(uint64_t));
  return copy;
}

inline void make_universe(Cube* cube) { memset(cube, 0xff, g_words * sizeof(uint64_t)); }

// 1: must be false, 2: must be true, 3: either.
inline uint32_t literal(const Cube* cube, uint32_t v) {
  return static_cast<uint32_t>(cube[v / kPerWord] >> (v % kPerWord * 2)) & 3;
}
inline void set_literal(Cube* cube, uint32_t v, uint64_t value) {
  uint64_t& word = cube[v / kPerWord];
  const uint32_t shift = v % kPerWord * 2;
  word = (word & ~(uint64_t{3} << shift)) | value << shift;
}

inline bool is_universe(const Cube* cube) {
  for (uint32_t w = 0; w < g_words; ++w) {
    if (~cube[w] != 0) return false;
  }
  return true;
}

// True where a and b share a point: no variable is left without a value.
inline bool intersects(const Cube* a, const Cube* b) {
  for (uint32_t w = 0; w < g_words; ++w) {
    const uint64_t both = a[w] & b[w];
    if (((both | both >> 1) & kFalseBits) != kFalseBits) return false;
  }
  return true;
}

inline bool contains(const Cube* outer, const Cube* inner) {
  for (uint32_t w = 0; w < g_words; ++w) {
    if ((inner[w] & ~outer[w]) != 0) return false;
  }
  return true;
}

inline bool same(const Cube* a, const Cube* b) { return memcmp(a, b, g_words * sizeof(uint64_t)) == 0; }

// A list of cubes that owns them.
class Cover {
 public:
  Cover() = default;
  Cover(const Cover&) = delete;
  Cover& operator=(const Cover&) = delete;
  Cover(Cover&& other) noexcept { swap(other); }
  Cover& operator=(Cover&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Cover() {
    for (uint32_t i = 0; i < size_; ++i) free(cubes_[i]);
    free(cubes_);
  }

  uint32_t size() const { return size_; }
  Cube* operator[](uint32_t i) const { return cubes_[i]; }

  // Takes the cube over.
  void add(Cube* cube) {
    if (size_ == room_) {
      room_ = room_ == 0 ? 4 : room_ * 2;
      cubes_ = static_cast<Cube**>(realloc(cubes_, room_ * sizeof(Cube*)));
      require(cubes_ != nullptr, "realloc returned null");
    }
    cubes_[size_++] = cube;
  }

  // Gives cube i up to the caller; the last takes its place.
  Cube* take(uint32_t i) {
    Cube* cube = cubes_[i];
    cubes_[i] = cubes_[--size_];
    return cube;
  }

  Cover copy() const {
    Cover result;
    for (uint32_t i = 0; i < size_; ++i) result.add(copy_of(cubes_[i]));
    return result;
  }

  // The cover as seen from inside `cube`: what does not meet it goes, and its literals become free.
  Cover cofactor(const Cube* cube) const {
    Cover result;
    for (uint32_t i = 0; i < size_; ++i) {
      if (!intersects(cubes_[i], cube)) continue;
      Cube* seen = new_cube();
      for (uint32_t w = 0; w < g_words; ++w) seen[w] = cubes_[i][w] | ~cube[w];
      result.add(seen);
    }
    return result;
  }

  bool covers_point(const Cube* point) const {
    for (uint32_t i = 0; i < size_; ++i) {
      if (contains(cubes_[i], point)) return true;
    }
    return false;
  }

 private:
  void swap(Cover& other) {
    std::swap(cubes_, other.cubes_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  Cube** cubes_ = nullptr;
  uint32_t size_ = 0;
  uint32_t room_ = 0;
};

}  // namespace workload
