// A thread's quarantine: small blocks that it has freed wait here before they can be handed out again. First in, first
// out, but each that comes in changes places with a random one that is there. All blocks in it are all zeros.
//
// There is a ring for each group of sizes, so that a few large blocks do not drive out all small ones:
//
//   up to 256 bytes     256 blocks, at most 64 KiB
//   up to 2 KiB          32 blocks, at most 64 KiB
//   up to 32 KiB          8 blocks, at most 256 KiB
//
// Synchronization: none; it belongs to one thread.
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

  template <class LetGo>
  void flush(LetGo let_go) {
    for (void*& slot : blocks_) {
      void* const block = slot;
      slot = nullptr;
      if (block != nullptr) let_go(block);
    }
  }

 private:
  void* blocks_[slots] = {};
  uint32_t next_ = 0;
};

class Quarantine {
 public:
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

  template <class LetGo>
  void flush(LetGo let_go) {
    small_.flush(let_go);
    middle_.flush(let_go);
    large_.flush(let_go);
  }

 private:
  // 24 random bits. A fast generator that can be predicted from its outputs (multiplicative, L'Ecuyer's constant).
  uint32_t next_random() {
    state_ *= 0xd1342543de82ef95;
    return static_cast<uint32_t>(state_ >> 40);
  }

  uint64_t state_ = 0;  // odd once started
  QuarantineRing<256> small_;
  QuarantineRing<32> middle_;
  QuarantineRing<8> large_;
};

}  // namespace annex::harden
