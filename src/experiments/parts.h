// What experiments put in the place of a flavour's parts (policy/flavours.h). The header of a policy includes this, and
// every layer that, so nothing of the layers can be included here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "experiments/marked.h"
#include "policy/flavours.h"

namespace annex {

struct Block;
struct Slab;
struct Chain;

namespace experiments {

struct Segregated;  // experiments/segregated.h

// --- channels, in the place of remote/channel.h's ByHeap ------------------------------------------------------------

// One compare-and-swap puts a batch to others of its slab (remote/batch.h), and a second one the slab to those of its
// heap that have something, unless it is there.
struct BySlab {
  template <class To>
  static void add(Slab* slab, const Chain& chain, To to) {
    to.send(slab, chain);
  }
  template <class To>
  static void flush(To) {}
};

// --- in the place of remote/open_batches.h's OpenBatches ------------------------------------------------------------

// Each block is a batch of its own: what batches are worth is the difference.
struct Unbatched {
  static bool add_to_open(Slab*, Block*) { return false; }
  template <class Close>
  static bool add(Slab* slab, Block* block, Close close) {
    close(slab, {block, block, 1});
    return true;
  }
  template <class Close>
  static void close_all(Close) {}
};

// --- parameters of OpenBatches --------------------------------------------------------------------------------------

struct LowBits {  // neighbouring slabs fall into neighbouring sets
  static constexpr size_t set_of(uint64_t number, size_t sets) { return number % sets; }
};

struct LeastRecent {  // a set is in order of use
  template <size_t ways, class Batch>
  static size_t victim(const Batch* set) {
    size_t way = 0;
    while (way < ways - 1 && set[way].slab != nullptr) ++way;
    return way;
  }
  template <class Batch>
  static Batch* use(Batch* set, size_t way) {
    std::rotate(set, set + way, set + way + 1);
    return set;
  }
};

struct Random {
  template <size_t ways, class Batch>
  size_t victim(const Batch* set) {
    for (size_t way = 0; way < ways; ++way) {
      if (set[way].slab == nullptr) return way;
    }
    state = state * 1664525 + 1013904223;
    return (state >> 16) % ways;
  }
  template <class Batch>
  static Batch* use(Batch* set, size_t way) {
    return set + way;
  }
  uint32_t state = 1;
};

}  // namespace experiments

// --- flavours -------------------------------------------------------------------------------------------------------

namespace policy {

struct Segregated : Shared {
  using Front = experiments::Segregated;
};

}  // namespace policy

}  // namespace annex
