// Sample points: which of the blocks that a heap hands out are samples of a heap profile (profile/).
//
// Samples are a Poisson process over the bytes of all blocks: how many bytes lie between two is drawn from an
// exponential distribution. One process for each heap and class is as good as one for all, and needs nothing on
// malloc's fast path: a heap's list of free blocks is cut where the next sample falls (core/heap.h: refill), so that
// the slow path hands it out. Nor does free: a sampled block carries its mark as any other when it is free
// (core/mark.h), and is looked at when its slab's free blocks are about to be handed out again.
//
// Synchronization: points are their heap's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/size_class.h"
#include "pages/granule.h"

namespace annex {

// Mean bytes between two samples; 0: no profile is on.
extern constinit std::atomic<uint64_t> sample_rate [[gnu::visibility("hidden")]];
inline bool samples_are_taken() { return sample_rate.load(std::memory_order_relaxed) != 0; }
// How often a profile has begun, or gone on with another rate.
extern constinit std::atomic<uint32_t> sample_begins [[gnu::visibility("hidden")]];

// The samples of a slab or span end: those that are free by now, or all. Of whoever keeps them (profile/samples.h);
// called for records with samples alone, which there are only where that is set.
using EndSamples = void(Granule* head, bool all);
extern constinit EndSamples* end_samples;

// Other threads add and end samples of a run that is in use.
inline bool has_samples(const Granule* head) { return __atomic_load_n(&head->samples, __ATOMIC_RELAXED) != 0; }

// Before blocks of a slab are handed out again that are free now.
inline void end_freed_samples(Granule* head) {
  if (has_samples(head)) [[unlikely]]
    end_samples(head, false);
}
// Before a slab or span is none any more.
inline void end_all_samples(Granule* head) {
  if (has_samples(head)) [[unlikely]]
    end_samples(head, true);
}

// A block's chance to be a sample, and how many like it each that is one speaks of.
double sample_chance(size_t bytes, uint64_t rate);

struct SamplePoints {
  uint64_t rate = 0;    // for which the rest was drawn; 0: it is to be drawn anew
  uint32_t begins = 0;  // sample_begins then
  uint64_t random = 0;
  uint32_t until[kClasses] = {};  // of each class: so many blocks are handed out before the next sample
  // Samples that have been handed out, and not been written down yet. Several, as malloc may start threads of the
  // library's own in between, which allocates.
  static constexpr uint8_t kPending = 4;
  void* pending[kPending] = {};
  uint8_t next_pending = 0;
  uint32_t labels = 0;  // the thread's set of labels (profile/labels.h)
  // Offload flavour: how many blocks were ready in the class's magazine when that was last seen to. Those that are not
  // any more have been handed out.
  uint32_t ready[kClasses] = {};

  // nullptr where memory is exhausted.
  static SamplePoints* make();

  // Before any of the rest is asked. Where a profile has begun since then, or forget() was called, all is drawn anew.
  void follow() {
    const uint64_t wanted = sample_rate.load(std::memory_order_relaxed);
    const uint32_t wanted_begins = sample_begins.load(std::memory_order_relaxed);
    if (rate != wanted || begins != wanted_begins) begin(wanted, wanted_begins);
  }
  // Blocks that were counted are not handed out after all. All that was drawn is forgotten, whatever it said: the
  // process has no memory, and to draw anew where there were such blocks alone would favour what is about to be
  // sampled.
  void forget() { rate = 0; }
  // Blocks of the class that were counted lie in a list no more: they are handed out another time.
  void put_back(SizeClass c, uint32_t blocks) {
    if (rate == sample_rate.load(std::memory_order_relaxed) && rate != 0) until[c] += blocks;
  }
  // A number of blocks.
  uint32_t draw(SizeClass c);
  // A block of the class is handed out. Whether it is a sample.
  bool hand_out(SizeClass c, void* block) {
    const bool sampled = until[c] == 0;
    if (sampled) {
      pending[next_pending] = block;
      next_pending = static_cast<uint8_t>((next_pending + 1) % kPending);
    }
    until[c] = sampled ? draw(c) : until[c] - 1;
    return sampled;
  }
  // Whether a block that has been handed out is a sample; it is no longer pending then.
  bool take(const void* block) {
    for (void*& one : pending) {
      if (one != block) continue;
      one = nullptr;
      return true;
    }
    return false;
  }

 private:
  void begin(uint64_t wanted, uint32_t wanted_begins);
};

}  // namespace annex
