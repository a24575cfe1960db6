// The malloc cache (Mallacc 4.1, Figures 8, 9 and 11): what a core remembers of the size classes that it used last. An
// entry has the range of sizes that are known to be of a class, the class's block size, and copies of the first two
// blocks of its free list. The list in memory stays the truth, so entries can go at any time.
//
// Here: the contents alone, at once and in no time; instructions and their times are in mallacc.h.
//
// From the paper: sizes are looked up by range; what is inserted reaches from the size asked for to the class's block
// size, and grows downwards (and upwards, for an allocator that gives the size itself in its place); the least recently
// used entry makes room; a pop hits only with both blocks there, and drops what there was otherwise; a push shifts.
// Ranges are of sizes, or of the indices of Figure 5 (TCMalloc's table of classes).
//
// Assumed, where the paper is silent or wrong: every instruction that finds an entry makes it the most recently used.
// mcnxtprefetch knows the list's head, whose address it has, and reads the block after it; Figure 11 stores what was
// read as the head of an entry without one, which the list's head is not. Here such an entry gets both. A push of no
// block drops both: software's way to say that it changed the list otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

class MallocCache {
 public:
  struct SizeClass {
    uint32_t number = 0;
    uint64_t bytes = 0;  // of its blocks
  };
  struct Blocks {
    Address head = 0;
    Address next = 0;
  };
  enum class Keys : uint8_t { kSizes, kIndices };

  MallocCache(uint32_t entries, Keys keys) : most_(entries), keys_(keys) {}

  std::optional<SizeClass> look_up(uint64_t size);
  // True where another entry had to go.
  bool update(uint64_t size, SizeClass of);

  // The prefetch that filled its entry; 0: none.
  uint64_t filled_by(uint32_t number) const;
  std::optional<Blocks> pop(uint32_t number);
  void push(uint32_t number, Address block);
  // Whether a prefetch would find something to fill.
  bool wants_next(uint32_t number) const;
  // The list now begins with that head, and after it `next`, says that prefetch.
  void fill(uint32_t number, Blocks blocks, uint64_t prefetch);

  // Whether there was anything.
  bool flush();
  size_t size() const { return entries_.size(); }

  // TCMalloc's, of its table of classes (Figure 5).
  static uint64_t index_of(uint64_t size) { return size <= 1024 ? (size + 7) >> 3 : (size + 15487) >> 7; }

 private:
  struct Entry {
    uint64_t least = 0;  // key
    uint64_t most = 0;
    SizeClass of;
    Blocks blocks = {};
    uint64_t filled_by = 0;
    uint64_t used = 0;
  };

  uint64_t key(uint64_t size) const { return keys_ == Keys::kIndices ? index_of(size) : size; }
  Entry* find(uint32_t number);
  const Entry* find(uint32_t number) const { return const_cast<MallocCache*>(this)->find(number); }
  void touch(Entry& entry) { entry.used = ++uses_; }

  const uint32_t most_;
  const Keys keys_;
  std::vector<Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace annex::sim
