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

  // os: below which address chance may put something.
  static constexpr uintptr_t kHighestPlace = uintptr_t{127} << 40;

  // core: whether chance decides where things lie (core/chance.h), with some granules left out, and how many blocks
  // that follow each other it mixes, a power of two up to 16; how the words of a free block are written; how malloc
  // takes one.
  static constexpr bool kByChance = false;
  static constexpr bool kGuards = false;
  static constexpr uint32_t kShuffled = 16;
  using FreeWords = PlainWords;
  using MallocSteps = PlainMallocSteps;

  // remote: how blocks are collected that belong to other threads' heaps, and how they get there.
  static constexpr size_t kSets = 64;
  static constexpr size_t kWays = 2;
  using Batches = remote::OpenBatches<kSets, kWays>;
  using Channel = remote::ByHeap;

  // front: what a thread holds back of what it frees.
  using Held = front::HoldsNothing;
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

  // harden: its measures; docs/hardened.md has what each costs.
  static constexpr bool kCanaries = true;
  static constexpr bool kZeroing = true;  // of what is freed
  static constexpr bool kChecks = true;   // that it is still zero when it is handed out
  static constexpr bool kQuarantine = true;
};

}  // namespace policy

}  // namespace annex
