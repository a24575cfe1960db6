// A thread's quarantine: small blocks that it has freed wait here before they can be handed out again. First in, first
// out, but each that comes in changes places with a random one that is there. All blocks in it are all zeros.
//
// There is a ring for each group of sizes, so that a few large blocks do not drive out all small ones:
//
//   up to 256 bytes     256 blocks, at most 64 KiB
//   up to 2 KiB          32 blocks, at most 64 KiB
//   up to 32 KiB          8 blocks, at most 256 KiB
//
// Blocks can be taken out of it beside its thread, which sleeps, by whoever has taken the thread's heap from it
// (front/lease.h). Blocks of up to 256 bytes come in on the fast path, so that one last exchange of such a block may
// still come, or be under way. It touches two places of its ring, the next one and one by chance, and changes what says
// which those are, in any order. So the places that it may touch are known, and all others can be emptied. Larger
// blocks come in on slow paths.
//
// Synchronization: it belongs to one thread; of a heap that can be taken, exchange() and for_each_place() are for slow
// paths. for_each_beside() is another thread's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "os/random.h"

namespace annex::harden {

template <uint32_t slots>
class QuarantineRing {
 public:
  // Takes a block in. The one that leaves for it, or nullptr while there is room.
  void* exchange(void* block, uint32_t random) {
    static_assert(std::has_single_bit(slots));
    void** const last = &blocks_[next_];
    void** const other = &blocks_[random % slots];
    void* const leaves = *last;
    *last = *other;
    *other = block;
    next_ = (next_ + 1) % slots;
    return leaves;
  }

  template <class Act>
  void for_each_place(Act act) {
    for (void*& place : blocks_) act(place);
  }

  // Of an exchange with one of these random numbers.
  template <class Act>
  void for_each_beside(uint32_t random, uint32_t other_random, Act act) {
    const uint32_t next = __atomic_load_n(&next_, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < slots; ++i) {
      const bool may_be_next = i == next || i == (next - 1) % slots;  // before it is changed, or after
      const bool may_be_other = i == random % slots || i == other_random % slots;
      if (!may_be_next && !may_be_other && blocks_[i] != nullptr) act(blocks_[i]);
    }
  }

 private:
  void* blocks_[slots] = {};
  uint32_t next_ = 0;
};

class Quarantine {
 public:
  static constexpr uint32_t kPlaces = 256 + 32 + 8;

  // start() seeds the random numbers. Before it, nothing else may be called.
  bool has_started() const { return state_ != 0; }
  void start() { state_ = os::random_word() | 1; }

  // A random number in [0, below); below is at most 2^16.
  uint32_t below(uint32_t below) { return static_cast<uint32_t>(uint64_t{next_random()} * below >> 24); }

  // The block that leaves for this one, or nullptr.
  void* exchange(void* block, size_t bytes) {
    if (bytes <= 256) return exchange_small(block);
    const uint32_t random = next_random();
    return bytes <= 2048 ? middle_.exchange(block, random) : large_.exchange(block, random);
  }
  // The same for a block of up to 256 bytes.
  void* exchange_small(void* block) { return small_.exchange(block, next_random()); }

  // Calls act(place) for each place, which has a block, or nullptr.
  template <class Act>
  void for_each_place(Act act) {
    small_.for_each_place(act);
    middle_.for_each_place(act);
    large_.for_each_place(act);
  }

  // For another thread, while the owner is in the middle of one exchange_small() at most, or of below(): the same for
  // each place that has a block and that this does not touch. act() may empty it.
  template <class Act>
  void for_each_beside(Act act) {
    const uint64_t state = __atomic_load_n(&state_, __ATOMIC_RELAXED);
    if (state == 0) return;
    // The step's own random number is the last one where it has been stored, else the next one.
    small_.for_each_beside(random_of(state), random_of(after(state)), act);
    const auto act_on_blocks = [=](void*& place) {
      if (place != nullptr) act(place);
    };
    middle_.for_each_place(act_on_blocks);
    large_.for_each_place(act_on_blocks);
  }

 private:
  // 24 random bits. A fast generator that can be predicted from its outputs (multiplicative, L'Ecuyer's constant).
  uint32_t next_random() {
    state_ = after(state_);
    return random_of(state_);
  }
  static uint64_t after(uint64_t state) { return state * 0xd1342543de82ef95; }
  static uint32_t random_of(uint64_t state) { return static_cast<uint32_t>(state >> 40); }

  uint64_t state_ = 0;  // odd once started
  QuarantineRing<256> small_;
  QuarantineRing<32> middle_;
  QuarantineRing<8> large_;
};

}  // namespace annex::harden
