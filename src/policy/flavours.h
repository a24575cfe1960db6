// What each flavour is made of: a struct of the parts that it is put together from, and of what is decided when it is
// compiled. A flavour's says what differs from the shared one's, and an experiment's what differs from its flavour's
// (experiments/experiments.cmake). Which one a build has: policy.h.
//
// Parts are named here and defined in the layers above, in the file that is noted: whoever uses one includes that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/malloc_steps.h"

namespace annex {

struct PlainWords;   // core/plain_words.h
struct SealedWords;  // core/sealed_words.h

namespace remote {
class ByHeap;       // remote/channel.h
struct Longest;     // remote/open_batches.h
struct Multiplied;  // the same, and so is the next
template <size_t sets, size_t ways, class Eviction = Longest, class Hash = Multiplied>
class OpenBatches;
}  // namespace remote

namespace front {
struct Shared;        // front/shared.h
struct Solo;          // front/solo.h
struct Offload;       // front/offload.h
struct Hardened;      // front/hardened.h
struct HoldsNothing;  // front/held.h
struct FreedBlocks;   // the same
}  // namespace front

namespace policy {

struct Shared {
  using Front = front::Shared;

  // os
  static constexpr uintptr_t kHighestPlace = uintptr_t{127} << 40;  // below which chance may put something

  // core
  static constexpr bool kByChance = false;   // whether chance decides where things lie (pages/chance.h)
  static constexpr bool kGuards = false;     // whether some granules are left out, which can't be read or written
  static constexpr uint32_t kShuffled = 16;  // so many fresh blocks of a slab in random order; a power of two up to 16
  using FreeWords = PlainWords;              // how the words of a free block are written
  using MallocSteps = PlainMallocSteps;      // how malloc takes a block from its list

  // remote: blocks of other threads' heaps
  static constexpr size_t kSets = 64;
  static constexpr size_t kWays = 2;
  using Batches = remote::OpenBatches<kSets, kWays>;  // how they are collected
  using Channel = remote::ByHeap;                     // how they get there

  // front
  using Held = front::HoldsNothing;  // what a thread holds back of what it frees
};

struct Solo : Shared {
  using Front = front::Solo;
};

struct Offload : Shared {
  using Front = front::Offload;
};

struct Hardened : Shared {
  using Front = front::Hardened;
  static constexpr bool kByChance = true;
  static constexpr bool kGuards = true;
  using FreeWords = SealedWords;
  using Held = front::FreedBlocks;

  // harden: docs/hardened.md has what each costs
  static constexpr bool kCanaries = true;
  static constexpr bool kZeroing = true;  // of what is freed
  static constexpr bool kChecks = true;   // that it is still zero when it is handed out
  static constexpr bool kQuarantine = true;
};

}  // namespace policy

}  // namespace annex
