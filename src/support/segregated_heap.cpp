// The support core's heap: see segregated_heap.h.
#include "support/segregated_heap.h"

#include <algorithm>
#include <bit>

#include "core/block.h"
#include "core/die.h"
#include "core/holes.h"
#include "core/sample_points.h"
#include "core/span.h"
#include "pages/page_heap.h"
#include "pages/purger.h"
#include "support/side_tables.h"

namespace annex::support {

namespace {

void for_each_free(const Slab* slab, void act(const Slab* slab, void* block)) {
  for (uint32_t at = 0; at * kWord < slab->carved; ++at) {
    for (uint64_t word = slab->bitmap[at]; word != 0; word &= word - 1) {
      const uint32_t number = at * kWord + static_cast<uint32_t>(std::countr_zero(word));
      act(slab, slab->start + number * block_size(slab->size_class));
    }
  }
}

void set_bits_of(Slab* slab, uint32_t from, uint32_t count) {
  uint64_t* const words = slab->bitmap;
  for (uint32_t i = from, end = from + count; i < end; i = (i / 64 + 1) * 64) {
    const uint64_t up_to_end = end - i < 64 ? (uint64_t{1} << (end - i)) - 1 : ~uint64_t{0};
    words[i / 64] |= up_to_end << (i % 64);
  }
  slab->first_word = static_cast<uint16_t>(std::min<uint32_t>(slab->first_word, from / 64));
}

// Sets the bits of fresh blocks, of at least so many where there are; or of those in a hole.
void carve(Slab* slab, uint32_t wanted) {
  uint32_t count;
  if (slab->in_holes > 0) [[unlikely]] {
    end_freed_samples(slab);  // before what says that they are free is gone
    const Blocks blocks = fill_hole(slab);
    count = blocks.count;
    set_bits_of(slab, blocks.first, count);
    for (uint32_t i = 0; i < count; ++i) {
      mark_free_in(slab, slab->start + (blocks.first + i) * block_size(slab->size_class));
    }
    if (slab->holes == 0) {
      for_each_free(slab, mark_free_in);
      note_no_holes(slab);
    }
  } else {
    const uint32_t left = slab_capacity(slab->size_class) - slab->carved;
    count = std::clamp(wanted, blocks_to_carve(slab), left);
    set_bits_of(slab, slab->carved, count);
    set_carved(slab, slab->carved + count);
  }
  page_heap.books.note_touched(count * block_size(slab->size_class));
}

bool in_one_granule(const void* a, const void* b) {
  return (reinterpret_cast<uintptr_t>(a) ^ reinterpret_cast<uintptr_t>(b)) < kGranule;
}

// Sets the bits of as many of the blocks, from the first on, as are the slab's; returns their number.
template <bool kHasMagic>
[[gnu::always_inline]] inline uint32_t set_bits(Slab* slab, void* const* blocks, uint32_t count) {
  char* const start = slab->start;
  const size_t size = block_size(slab->size_class);
  const size_t carved_bytes = slab->carved * size;
  const uint32_t magic = slab_magic(slab->size_class);
  uint64_t* const words = slab->bitmap;
  size_t first = slab->first_word;
  void* const* next = blocks;
  const bool has_holes = slab->holes != 0;
  for (void* const* end = blocks + count; next != end; ++next) {
    const size_t offset = static_cast<size_t>(static_cast<char*>(*next) - start);
    if (offset >= carved_bytes) break;
    if (has_holes && in_hole(slab, offset)) [[unlikely]]
      die(kFreedTwice, *next, slab);
    const uint64_t product = offset * magic;  // support/side_tables.h
    const bool misaligned = kHasMagic ? static_cast<uint32_t>(product) >= magic : offset % size != 0;
    if (misaligned) [[unlikely]]
      die(kIntoABlock, *next, slab);
    const size_t index = kHasMagic ? product >> 32 : offset / size;
    const size_t at = index / kWord;
    const uint64_t before = words[at];
    const uint64_t after = before | uint64_t{1} << (index % kWord);
    if (after == before) [[unlikely]]
      die(kFreedTwice, *next, slab);
    words[at] = after;
    first = std::min(first, at);
  }
  slab->first_word = static_cast<uint16_t>(first);
  return static_cast<uint32_t>(next - blocks);
}

}  // namespace

// nullptr where memory is exhausted.
Slab* SegregatedHeap::new_slab(SizeClass c) {
  Slab* slab = make_slab(c, {nullptr, 0});
  if (slab == nullptr) return nullptr;
  slab->support_heap = this;
  slab->start = start_of(slab);
  slab->first_word = 0;
  register_slab(slab);
  ++slabs_[c];
  return slab;
}

Slab* SegregatedHeap::provide(SizeClass c, uint32_t wanted) {
  Slab* const slab = life_.choose(c, [this](SizeClass of) { return new_slab(of); });
  if (slab != nullptr && !Bits::has_free(slab)) carve(slab, wanted);
  return slab;
}

// Takes free blocks out of the first word of a slab's bitmap that has any (there is one), and goes on while they lie
// side by side: up to `most`.
Batch SegregatedHeap::take_bits(Slab* slab, uint32_t most) {
  end_freed_samples(slab);
  uint64_t* const words = slab->bitmap;
  uint32_t at = first_word(slab);
  Batch batch = {slab->start + size_t{at} * kWord * block_size(slab->size_class), words[at]};
  uint32_t count = static_cast<uint32_t>(std::popcount(batch.mask));
  for (; count > most; --count) batch.mask &= ~(uint64_t{1} << (63 - std::countl_zero(batch.mask)));
  words[at] &= ~batch.mask;
  const uint32_t end = (slab->carved + kWord - 1) / kWord;
  for (uint32_t consecutive = kWord; consecutive == kWord && ++at < end;) {
    consecutive = std::min(static_cast<uint32_t>(std::countr_one(words[at])), most - count);
    if (consecutive == 0) break;
    words[at] &= ~(~uint64_t{0} >> (kWord - consecutive));
    batch.more += consecutive;
    count += consecutive;
  }
  slab->countdown = static_cast<uint16_t>(slab->countdown + count);
  return batch;
}

Batch SegregatedHeap::take(SizeClass c, uint32_t most) {
  note_change();
  Slab* const slab = provide(c, most);
  return slab != nullptr ? take_bits(slab, most) : Batch{};
}

void* SegregatedHeap::take_or_carve(SizeClass c) {
  Slab* const slab = provide(c, 1);
  return slab != nullptr ? take_bit(slab) : nullptr;
}

// So many blocks of the slab have come back.
[[gnu::always_inline]] inline void SegregatedHeap::count_back(Slab* slab, uint32_t came_back) {
  const uint32_t out = slab->countdown - came_back;
  slab->countdown = static_cast<uint16_t>(out);
  const uint32_t free = slab_capacity(slab->size_class) - out;
  if (slab->state == SlabState::kFull && free < fair_share(slab_capacity(slab->size_class))) return;
  if (life_.came_back(slab, out)) drop(slab);
}

// As many of the blocks, from the first on, as are the slab's; returns their number. Blocks of one slab often come
// together: what concerns the slab is done once for all of them.
[[gnu::always_inline]] inline uint32_t SegregatedHeap::put(Slab* slab, void* const* blocks, uint32_t count) {
  const uint32_t taken =
      slab_magic(slab->size_class) != 0 ? set_bits<true>(slab, blocks, count) : set_bits<false>(slab, blocks, count);
  if (taken == 0) [[unlikely]]  // the caller has seen that it is the slab's
    die(kIntoABlock, blocks[0], slab);
  count_back(slab, taken);
  return taken;
}

[[gnu::noinline]] uint32_t SegregatedHeap::put_many(Slab* slab, void* const* blocks, uint32_t count) {
  return put(slab, blocks, count);
}

void SegregatedHeap::put_back(void* const* blocks, uint32_t count) {
  SegregatedHeap* held = nullptr;
  const auto hold = [&held](SegregatedHeap* heap) {
    if (heap == held) return;
    if (held != nullptr) held->lock.unlock();
    held = heap;
    if (heap == nullptr) return;
    heap->lock.lock();
    heap->note_change();
  };
  for (uint32_t i = 0; i < count;) {
    Granule* const head = block_or_die(blocks[i]);
    if (Span* span = as_span(head)) {
      hold(nullptr);
      free_span(span);
      ++i;
    } else {
      Slab* const slab = static_cast<Slab*>(head);
      SegregatedHeap* const heap = slab->support_heap;
      hold(heap);
      // Blocks that were freed here and there: what is made for many costs more than the one.
      const bool alone = i + 1 == count || !in_one_granule(blocks[i], blocks[i + 1]);
      i += alone ? heap->put(slab, blocks + i, 1) : heap->put_many(slab, blocks + i, count - i);
    }
  }
  hold(nullptr);
  if (count > 0) wake_purger();
}

bool SegregatedHeap::put_one(void* block) {
  const size_t offset = reinterpret_cast<uintptr_t>(block) - primary.start;
  if (offset >> kGranuleShift >= primary_granules()) return false;
  Slab* const slab = static_cast<Slab*>(primary_granule(primary.start, offset >> kGranuleShift));
  const auto product = static_cast<unsigned __int128>(offset % kGranule) * slab->key;
  if (static_cast<uint64_t>(product) >= slab->limit) return false;  // core/slab_record.h
  const auto index = static_cast<uint32_t>(product >> 64);
  uint64_t* const word = slab->bitmap + index / kWord;
  const uint64_t bit = uint64_t{1} << (index % kWord);
  if ((*word & bit) != 0) [[unlikely]]
    die(kFreedTwice, block, slab);
  *word |= bit;
  slab->first_word = static_cast<uint16_t>(std::min<uint32_t>(slab->first_word, index / kWord));
  if (slab->state == SlabState::kCurrent) [[likely]] {
    --slab->countdown;
  } else {
    count_back(slab, 1);
  }
  return true;
}

[[gnu::no_sanitize_thread]] bool SegregatedHeap::is_free(const Slab* slab, const void* block) {
  const size_t index =
      static_cast<size_t>(static_cast<const char*>(block) - slab->start) / block_size(slab->size_class);
  return (slab->bitmap[index / kWord] >> (index % kWord) & 1) != 0;
}

void SegregatedHeap::drop(Slab* slab) {
  --slabs_[slab->size_class];
  unregister_slab(slab);
  let_go(slab);
}

size_t SegregatedHeap::make_holes_in(Slab* slab) {
  const size_t rest = purge_uncarved(slab);
  if (slab->countdown == usable_of(slab)) return rest;
  BlockSet free;
  for (uint32_t number = 0; number < slab->carved; ++number) {
    if ((slab->bitmap[number / kWord] >> (number % kWord) & 1) != 0) free.add(number);
  }
  const uint32_t before = usable_of(slab);
  const uint64_t fresh = plan_holes(slab, &free);
  if (fresh == 0) return rest;
  for (uint32_t number = 0; number < slab->carved; ++number) {
    if (!free.has(number)) slab->bitmap[number / kWord] &= ~(uint64_t{1} << (number % kWord));
  }
  note_holes(slab);
  page_heap.books.note_untouched((before - usable_of(slab)) * block_size(slab->size_class));
  return rest + purge_holes(slab, fresh);
}

size_t SegregatedHeap::make_holes(const os::Stop& stop) {
  size_t total = 0;
  const auto make = [&](Slab* slab) {
    total += make_holes_in(slab);
    return !stop();
  };
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (Slab* const slab = life_.current(c); slab != nullptr && !make(slab)) return total;
  }
  life_.for_each_partial(make);
  return total;
}

void SegregatedHeap::flush() {
  for (SizeClass c = 0; c < kClasses; ++c) {
    Slab* slab = life_.current(c);
    if (slab == nullptr || slab->countdown != 0) continue;
    life_.leave_current(c, 0);
    drop(slab);
  }
}

}  // namespace annex::support
