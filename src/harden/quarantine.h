// A thread's quarantine: small blocks that it has freed wait here before they can be handed out again. First in, first
// out, but each that comes changes places with one that waits, by chance. A block that waits is all zeros.
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

#include "core/granule.h"
#include "os/random.h"

namespace annex::harden {

template <uint32_t places>
class Ring {
 public:
  // Takes a block in. The one that leaves for it, or nullptr while there is room.
  void* exchange(void* block, uint32_t chance) {
    static_assert(std::has_single_bit(places));
    void** const last = &waiting_[next_];
    void** const other = &waiting_[chance % places];
    void* const leaves = *last;
    *last = *other;
    *other = block;
    next_ = (next_ + 1) % places;
    return leaves;
  }

  template <class LetGo>
  void flush(LetGo let_go) {
    for (void*& place : waiting_) {
      void* const block = place;
      place = nullptr;
      if (block != nullptr) let_go(block);
    }
  }

 private:
  void* waiting_[places] = {};
  uint32_t next_ = 0;
};

class Quarantine {
 public:
  // It has no chance to go by before start(), and nothing else may be called.
  bool has_started() const { return state_ != 0; }
  void start() { state_ = os::random_word() | 1; }

  // A number by chance, in [0, below); below is at most 2^16.
  uint32_t below(uint32_t below) { return static_cast<uint32_t>(uint64_t{next_chance()} * below >> 24); }

  // The block that leaves for this one, or nullptr.
  void* exchange(void* block, size_t bytes) {
    if (bytes <= 256) return exchange_small(block);
    const uint32_t chance = next_chance();
    return bytes <= 2048 ? middle_.exchange(block, chance) : large_.exchange(block, chance);
  }
  // The same for a block of up to 256 bytes.
  void* exchange_small(void* block) { return small_.exchange(block, next_chance()); }

  template <class LetGo>
  void flush(LetGo let_go) {
    small_.flush(let_go);
    middle_.flush(let_go);
    large_.flush(let_go);
  }

 private:
  // Fast; nothing in it is a secret for long (L'Ecuyer's multiplier).
  uint32_t next_chance() {
    state_ *= 0xd1342543de82ef95;
    return static_cast<uint32_t>(state_ >> 40);
  }

  uint64_t state_ = 0;  // odd once started
  Ring<256> small_;
  Ring<32> middle_;
  Ring<8> large_;
};

}  // namespace annex::harden
