// What one thread of a trial holds and has freed: the model by which the misuse fuzzer knows of each address whether a
// free of it is right. It lives in static storage, so that it neither disturbs the heap under test nor is disturbed.
//
// Synchronization: its thread's alone while a round runs (misuse_crew.h); between rounds anyone may look.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/random.h"

namespace annex_test {

// A block in use, and a sum over what was written into it.
struct Held {
  char* start;
  std::size_t bytes;
  std::uint64_t sum;
};

// A block that was freed, or that realloc moved away from. Its address may be in use again.
struct Freed {
  char* start;
  std::size_t bytes;
  bool moved;
};

// The sizes that a trial asks for most, so that the same few classes see all of its traffic.
struct Appetite {
  static constexpr std::size_t kFavourites = 4;
  std::size_t favourites[kFavourites];

  explicit Appetite(Random* random);
  std::size_t draw(Random* random) const;
};

class Ledger {
 public:
  static constexpr std::size_t kMostHeld = 4096;
  static constexpr std::size_t kMostFreed = 8192;

  static constexpr std::size_t kMostBytes = std::size_t{24} << 20;

  // One correct call or check; `growth` is in percent: above 50 the ledger grows. False where the heap was wrong, here
  // and below, and problem() says what.
  bool step(Random* random, const Appetite& appetite, unsigned growth);

  bool allocate(Random* random, std::size_t bytes);
  // By malloc, whatever the seed says; nullptr where there is no room.
  const Held* allocate_plainly(Random* random, std::size_t bytes);
  bool release(std::size_t index);
  bool reallocate(Random* random, std::size_t index, std::size_t bytes);
  bool check(std::size_t index) const;

  // Hands `count` blocks to another ledger, whose thread will free them.
  void pass_to(Ledger* other, Random* random, std::size_t count);
  const char* problem() const { return problem_; }

  std::size_t held() const { return held_count_; }
  const Held& held(std::size_t index) const { return held_[index]; }
  bool holds(const void* start) const;
  // Index 0 is the last one that was freed.
  std::size_t freed() const { return freed_count_ < kMostFreed ? freed_count_ : kMostFreed; }
  const Freed& freed(std::size_t index) const { return freed_[(freed_count_ - 1 - index) % kMostFreed]; }

 private:
  bool admit(Random* random, void* block, std::size_t bytes);
  std::uint64_t write(Random* random, char* block, std::size_t bytes) const;
  void note_freed(const Held& block, bool moved) {
    freed_[freed_count_++ % kMostFreed] = {block.start, block.bytes, moved};
  }

  Held take_out(std::size_t index);
  bool has_room_for(std::size_t bytes) const { return held_count_ < kMostHeld && held_bytes_ + bytes <= kMostBytes; }
  bool fail(const char* problem);

  const char* problem_ = "nothing";
  std::size_t held_count_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t freed_count_ = 0;  // ever
  Held held_[kMostHeld];
  Freed freed_[kMostFreed];
};

}  // namespace annex_test
