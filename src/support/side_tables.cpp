// Side tables of the arena's granules: see side_tables.h.
#include "support/side_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/free_block.h"
#include "os/pages.h"
#include "os/random.h"
#include "pages/page_heap.h"

namespace annex::support {

constinit SideTables side_tables[kMaxArenas];
constinit Mapped mapped = {nullptr, 0, nullptr, 0};

namespace {

constexpr size_t kStep = 64 * 1024;  // bytes committed at a time: the map of 512 MiB, the bitmaps of 8 MiB

struct Place {
  SideTables* tables;
  size_t granule;
};

Place place_of(const Slab* slab) { return {&side_tables[slab->arena], arena_of_run(slab).index_of(slab)}; }

uint64_t* word_at(const void* address) {
  const Arena* arena = arena_of(address);
  return side_tables[arena->number()].map() + arena->index_of(arena->granule_at(address));
}

}  // namespace

// Makes `wanted` bytes of a table usable, of which `*committed` are already.
os::MapResult SideTables::grow(void* table, size_t* committed, size_t wanted) {
  if (wanted <= *committed) return os::MapResult::kMapped;
  const os::MapResult result = os::map_at(static_cast<char*>(table) + *committed, wanted - *committed);
  if (result != os::MapResult::kMapped) return result;
  page_heap.books.committed += wanted - *committed;
  page_heap.books.metadata += wanted - *committed;
  *committed = wanted;
  return result;
}

os::MapResult SideTables::commit(const Arena& arena, size_t end) {
  const size_t granules = arena.bytes() / kGranule;
  const size_t map_bytes = round_up(granules * sizeof(uint64_t), kStep);
  if (map_ == nullptr) {
    char* const room = os::room(map_bytes + round_up(granules * kBitmapBytes, kStep), kStep);
    if (room == nullptr) return os::MapResult::kNoMemory;
    bitmaps_ = room + map_bytes;
    map_ = reinterpret_cast<uint64_t*>(room);
    if (&arena == &arenas[0]) {  // once: other threads read it from here on
      mapped.base = arena.start();
      mapped.map = map_;
      __atomic_store_n(&mapped.largest_request, kTableMax, __ATOMIC_RELAXED);
    }
  }
  os::MapResult result = grow(bitmaps_, &bitmaps_committed_, round_up(end * kBitmapBytes, kStep));
  if (result == os::MapResult::kMapped) {
    result = grow(map_, &map_committed_, round_up(end * sizeof(uint64_t), kStep));
  }
  if (result == os::MapResult::kMapped && &arena == &arenas[0]) {
    const size_t reached = std::min(map_committed_ / sizeof(uint64_t), granules);
    __atomic_store_n(&mapped.bytes, reached * kGranule, __ATOMIC_RELEASE);
  }
  return result;
}

os::MapResult commit(const Arena& arena, size_t end) { return side_tables[&arena - arenas].commit(arena, end); }

void purge_bitmaps(const Locked& lock) {
  PageHeap::walk(lock, [](const Granule* run) {
    if (!is_free(run)) return 0;
    char* const start = reinterpret_cast<char*>(side_tables[run->arena].bitmap(arenas[run->arena].index_of(run)));
    const uintptr_t from = round_up(reinterpret_cast<uintptr_t>(start), os::page_size());
    const uintptr_t to = round_down(reinterpret_cast<uintptr_t>(start) + run->length * kBitmapBytes, os::page_size());
    if (to > from) os::purge(reinterpret_cast<void*>(from), to - from);
    return 0;
  });
}

void register_slab(Slab* slab) {
  const auto [book, granule] = place_of(slab);
  const uint32_t granules = slab_granules(slab->size_class);
  slab->bitmap = book->bitmap(granule);
  memset(slab->bitmap, 0, (slab_capacity(slab->size_class) + 63) / 64 * sizeof(uint64_t));
  // The highest bit is set, so that no mark is an address: those have 47 bits.
  const uint64_t random = (os::mixed(slab->key) | 0x80000000) << 32 & ~kHasHoles;
  const uint64_t word = random | uint64_t{tag_of(slab->size_class)} << 16;
  for (uint32_t i = 0; i < granules; ++i) __atomic_store_n(book->map() + granule + i, word, __ATOMIC_RELAXED);
}

void unregister_slab(Slab* slab) {
  const auto [book, granule] = place_of(slab);
  for (uint32_t i = 0; i < slab_granules(slab->size_class); ++i) {
    __atomic_store_n(book->map() + granule + i, 0, __ATOMIC_RELAXED);
  }
}

namespace {

template <class Change>
void change_words(const Slab* slab, Change change) {
  const auto [book, granule] = place_of(slab);
  for (uint32_t i = 0; i < slab_granules(slab->size_class); ++i) {
    uint64_t* const at = book->map() + granule + i;
    uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &word, change(word, i), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

}  // namespace

void note_holes(Slab* slab) {
  change_words(slab, [](uint64_t word, uint32_t) { return (word - end_in(word)) | kHasHoles; });
}

void note_no_holes(Slab* slab) {
  const size_t last = (slab->carved - size_t{1}) * block_size(slab->size_class);  // where the last block starts
  change_words(slab, [=](uint64_t word, uint32_t granule) {
    const uint64_t without = (word & ~kHasHoles) - end_in(word);
    const size_t start = granule * kGranule;
    return last < start ? without : without + std::min(last - start, kGranule - kMinAlignment) + 1;
  });
}

void mark_free_in(const Slab* slab, void* block) {
  const auto [book, granule] = place_of(slab);
  mark_free(key_beside_holes(__atomic_load_n(book->map() + granule, __ATOMIC_RELAXED)), block);
}

uint64_t map_word(const void* address) { return __atomic_load_n(word_at(address), __ATOMIC_RELAXED); }

uint32_t give_out(const Batch& part, SizeClass c, void** out) {
  if (part.mask == 0) return 0;
  // Whoever has the heap's lock may say at this moment that the slab has holes, or none any more.
  const auto raise_end = [](uint64_t* at, uint64_t word, const void* block) {
    const uint32_t end = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(block) % kGranule) + 1;
    if (end <= end_in(word)) return false;
    while (
        (word & kHasHoles) == 0 && end > end_in(word) &&
        !__atomic_compare_exchange_n(at, &word, word - end_in(word) + end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return true;
  };
  uint64_t* const at = word_at(part.first);
  const uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
  const uint64_t key = key_beside_holes(word);  // all granules of a slab have the same
  const auto mark = [key](void* block) { mark_free(key, block); };
  if (slab_granules(c) == 1) {
    const char* const highest = part.first + (std::bit_width(part.mask) - 1) * block_size(c);
    return raise_end(at, word, highest) ? spread(part, c, out, mark) : spread(part, c, out);
  }
  return spread(part, c, out, [&](void* block) {
    raise_end(word_at(block), map_word(block), block);
    mark(block);
  });
}

}  // namespace annex::support
