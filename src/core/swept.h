// What the purger remembers of a heap from one pass to the next: whether anything has happened to it, and whether what
// it keeps has gone back.
//
// Synchronization: the purger's alone.
#pragma once

#include <cstdint>
#include <utility>

namespace annex {

struct Swept {
  uint64_t seen = 0;   // how often something had happened to the heap, when the purger last looked
  bool swept = false;  // its memory went back then, and there may be nothing more

  // Whether the heap is idle, and has not been swept since something happened to it: at most `few` things since the
  // last look, by how many there are `now`. *rested: whether it was none at all.
  bool wants(uint64_t now, uint64_t few, bool* rested) {
    const uint64_t happened = now - std::exchange(seen, now);
    *rested = happened == 0;
    if (swept && *rested) return false;
    return swept = happened <= few;
  }
  // Whether nothing has happened to it since it was swept.
  bool rests(uint64_t now) const { return swept && now == seen; }
};

}  // namespace annex
