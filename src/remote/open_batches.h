// The blocks of other heaps that a thread frees, collected by slab, so that what is sent is batches (BatchIt, section
// 3).
//
// A set-associative cache of open batches, keyed by the slab. A batch is closed when its place is needed for another
// slab, or when it is full. Blocks above kBatchBytes are closed at once.
//
// How much a batch holds is decided when it is opened: while no more than a quarter of the places are open twice as
// much as later. So few slabs get long batches, and many do not hold more memory for it.
//
// The paper's section 4 has 8 sets of 2 ways, as an educated guess. Here there are 64, a line of the host's caches
// each: threads that free what many others allocated see hundreds of slabs in turn. Shape, hash and eviction are
// parameters; docs/figures.md (BatchIt) has what others would do (targets annex-batches-...).
//
// Synchronization: none; they belong to one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "core/slab_record.h"
#include "policy/flavours.h"
#include "remote/message.h"

namespace annex::remote {

// What a batch holds where many are open.
inline constexpr size_t kBatchBytes = 2048;

// How many blocks fit into so many bytes, by class; one at least.
constexpr std::array<uint8_t, kClasses> blocks_in(size_t bytes) {
  std::array<uint8_t, kClasses> blocks{};
  for (SizeClass c = 0; c < kClasses; ++c) {
    blocks[c] = static_cast<uint8_t>(std::clamp<size_t>(bytes / block_size(c), 1, kMostBlocks));
  }
  return blocks;
}
inline constexpr auto kRoom = blocks_in(kBatchBytes);
inline constexpr auto kRoomOfFew = blocks_in(2 * kBatchBytes);
static_assert(kMostBlocks <= UINT8_MAX);

struct OpenBatch {
  Slab* slab = nullptr;  // nullptr: unused
  Block* first = nullptr;
  Block* last = nullptr;
  uint32_t count = 0;
  uint32_t room = 0;  // the count at which the batch is closed
};
static_assert(sizeof(OpenBatch) == 32);

// --- hashes: the set of a slab, by its granule's number, one of a power of two --------------------------------------

struct Multiplied {  // neighbouring slabs fall into different sets
  static constexpr size_t set_of(uint64_t number, size_t sets) {
    return number * 0x9E3779B97F4A7C15u >> 1 >> (63 - std::countr_zero(sets));
  }
};

// --- evictions: which of a set's batches goes, and what a use of one changes ----------------------------------------

struct Longest {
  template <size_t ways>
  static size_t victim(const OpenBatch* set) {
    size_t found = 0;
    for (size_t way = 0; way < ways; ++way) {
      if (set[way].slab == nullptr) return way;
      if (set[way].count > set[found].count) found = way;
    }
    return found;
  }
  static OpenBatch* use(OpenBatch* set, size_t way) { return set + way; }
};

// --- the cache ------------------------------------------------------------------------------------------------------

template <size_t sets, size_t ways, class Eviction, class Hash>
class OpenBatches {
 public:
  static_assert(std::has_single_bit(sets));
  static constexpr size_t kPlaces = sets * ways;  // batches

  // Takes a block in where the slab has an open batch that it doesn't fill. False where nothing has happened.
  [[gnu::always_inline]] bool add_to_open(Slab* slab, Block* block) {
    OpenBatch* const set = set_of(slab);
    const size_t way = way_of(set, slab);
    if (set[way].slab != slab || set[way].first == block || set[way].count + 1 == set[way].room) [[unlikely]]
      return false;
    push(eviction_.use(set, way), block);
    return true;
  }

  // Takes a block in. Calls close(slab, chain) for each batch that is closed. False where the block is the one that was
  // freed last: then nothing has happened.
  template <class Close>
  bool add(Slab* slab, Block* block, Close close) {
    OpenBatch* const set = set_of(slab);
    size_t way = way_of(set, slab);
    const bool is_new = set[way].slab != slab;
    if (is_new) {
      way = eviction_.template victim<ways>(set);
      close_one(&set[way], close);
    }
    OpenBatch* const open = eviction_.use(set, way);
    if (is_new) {
      open->slab = slab;
      open->last = block;
      const bool few = ++open_count_ <= std::max<size_t>(kPlaces / 4, 1);
      open->room = (few ? kRoomOfFew : kRoom)[slab->size_class];
    }
    if (open->first == block) return false;
    push(open, block);
    if (open->count == open->room) close_one(open, close);
    return true;
  }

  template <class Close>
  void close_all(Close close) {
    for (OpenBatch& open : open_) close_one(&open, close);
  }

 private:
  OpenBatch* set_of(const Slab* slab) {
    return open_ + Hash::set_of(reinterpret_cast<uintptr_t>(slab) / sizeof(Granule), sets) * ways;
  }

  // Where in its set the slab has its batch; any place where it has none. No branch, as nobody could predict it.
  static size_t way_of(const OpenBatch* set, const Slab* slab) {
    size_t found = 0;
    for (size_t way = 1; way < ways; ++way) found |= way * size_t{set[way].slab == slab};
    return found;
  }

  static void push(OpenBatch* open, Block* block) {
    set_next(block, open->first);
    open->first = block;
    ++open->count;
  }

  template <class Close>
  void close_one(OpenBatch* open, Close close) {
    if (open->slab == nullptr) return;
    const OpenBatch batch = *open;
    *open = OpenBatch{};
    --open_count_;
    close(batch.slab, Chain{batch.first, batch.last, batch.count});
  }

  alignas(64) OpenBatch open_[kPlaces];
  uint32_t open_count_ = 0;
  [[no_unique_address]] Eviction eviction_;
};

}  // namespace annex::remote
