// Free lists in order: see list_order.h.
#include "core/list_order.h"

#include <bit>
#include <cstring>

#include "core/die.h"
#include "core/slab.h"

namespace annex {

namespace {

constexpr bool long_lists_are_of_one_granule() {
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (slab_granules(c) > 1 && slab_capacity(c) >= kLongList) return false;
  }
  return true;
}
static_assert(long_lists_are_of_one_granule());

// A bit for each place in a granule where a block may start.
class Places {
 public:
  // False where it was there.
  bool add(size_t offset) {
    const size_t place = offset / kMinAlignment;
    const uint64_t bit = uint64_t{1} << place % 64;
    const bool is_new = (words_[place / 64] & bit) == 0;
    words_[place / 64] |= bit;
    return is_new;
  }

  // Calls use(offset) for each, the last one first.
  template <class Use>
  void for_each_backwards(Use use) const {
    for (size_t i = kWords; i-- > 0;) {
      for (uint64_t word = words_[i]; word != 0;) {
        const int bit = 63 - std::countl_zero(word);
        word &= ~(uint64_t{1} << bit);
        use((i * 64 + static_cast<size_t>(bit)) * kMinAlignment);
      }
    }
  }

 private:
  static constexpr size_t kWords = kGranule / kMinAlignment / 64;
  uint64_t words_[kWords] = {};
};

Block* link_in_order(uint64_t key, char* first, size_t size, uint32_t count) {
  char* const last = first + (count - 1) * size;
  for (char* block = first; block <= last; block += size) {
    set_next(reinterpret_cast<Block*>(block), block < last ? reinterpret_cast<Block*>(block + size) : nullptr);
    mark_free(key, block);
  }
  return reinterpret_cast<Block*>(first);
}

// All else of them is zero. Each sixteen are in random order: whoever has one knows the next one's place with odds of
// one in sixteen, and a program that goes through its blocks as it has allocated them still goes from page to page in
// order, which caches see coming. (In random order over a slab, that takes up to five times as long.)
Block* link_by_chance(uint64_t key, char* first, size_t size, uint32_t count, bool zero, Chance* chance) {
  if (!zero) memset(first, 0, count * size);
  Block* list = nullptr;
  for (uint32_t end = count; end > 0;) {
    const uint32_t start = (end - 1) / kShuffled * kShuffled;
    uint8_t order[kShuffled];
    uint64_t bits = chance->word();  // four for each block
    for (uint32_t i = 0; i < end - start; ++i, bits >>= 4) {
      const uint32_t j = static_cast<uint32_t>((bits & (kShuffled - 1)) * (i + 1) / kShuffled);
      order[i] = order[j];
      order[j] = static_cast<uint8_t>(i);
    }
    for (uint32_t i = 0; i < end - start; ++i) {
      Block* block = reinterpret_cast<Block*>(first + (start + order[i]) * size);
      set_next(block, list);
      mark_free(key, block);
      list = block;
    }
    end = start;
  }
  return list;
}

}  // namespace

Block* link_blocks(uint64_t key, char* first, size_t size, uint32_t count, bool zero, Chance* chance) {
  return kByChance ? link_by_chance(key, first, size, count, zero, chance) : link_in_order(key, first, size, count);
}

Block* in_order(const Slab* slab, Block* list) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(list) & ~(kGranule - 1);
  Places places;
  const Block* before = list;
  for (Block* block = list; block != nullptr; before = block, block = next_of(block)) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(block) - start;
    if (offset >= kGranule || !own_block_starts_at(slab, offset)) die(kWrittenAfterFree, before, slab);
    if (!places.add(offset)) die(kFreedTwice, block, slab);
  }
  Block* ordered = nullptr;
  places.for_each_backwards([&](size_t offset) {
    Block* block = reinterpret_cast<Block*>(start + offset);
    set_next(block, ordered);
    ordered = block;
  });
  return ordered;
}

}  // namespace annex
