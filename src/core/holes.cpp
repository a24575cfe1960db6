// Holes: see holes.h.
#include "core/holes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/die.h"
#include "core/free_block.h"
#include "core/slab.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

static_assert(kLongestSlab / 4096 <= 64, "a slab has no more pages than a word has bits");

// The pages of a range of bytes within a slab, as bits.
uint64_t pages_of(size_t from, size_t bytes) {
  const size_t first = from / os::page_size();
  const size_t last = (from + bytes - 1) / os::page_size();
  return (~uint64_t{0} >> (63 - (last - first))) << first;
}

uint64_t pages_of_block(const Slab* slab, uint32_t number) {
  const size_t size = block_size(slab->size_class);
  return pages_of(number * size, size);
}

uint32_t number_of(const Slab* slab, const char* start, const Block* block) {
  const size_t offset = static_cast<size_t>(reinterpret_cast<const char*>(block) - start);
  return static_cast<uint32_t>(offset / block_size(slab->size_class));
}

// Adds the blocks of a list, which `before` leads to; how many there are.
uint32_t add_list(BlockSet* free, const Slab* slab, const char* start, const Block* before, const Block* block) {
  const size_t size = block_size(slab->size_class);
  uint32_t count = 0;
  for (; block != nullptr; before = block, block = next_of(block)) {
    const size_t offset = static_cast<size_t>(reinterpret_cast<const char*>(block) - start);
    if (offset >= slab->carved * size || offset % size != 0) die(kWrittenAfterFree, before, slab);
    if (free->has(static_cast<uint32_t>(offset / size))) die(kFreedTwice, block, slab);
    free->add(static_cast<uint32_t>(offset / size));
    ++count;
  }
  return count;
}

// Adds blocks that are held back.
void add_held(BlockSet* free, const Slab* slab, const char* start, HeldBack held) {
  for (const HeldBlock& one : held) {
    if (free->has(number_of(slab, start, one.block))) die(kFreedTwice, one.block, slab);
    free->add(number_of(slab, start, one.block));
  }
}

// A list of those blocks, in order of address.
Block* link(const Slab* slab, char* start, const BlockSet& free) {
  Block* list = nullptr;
  for (uint32_t number = slab->carved; number-- > 0;) {
    if (!free.has(number)) continue;
    Block* const block = reinterpret_cast<Block*>(start + number * block_size(slab->size_class));
    set_next(block, list);
    list = block;
  }
  return list;
}

// Every free of its blocks takes the slow path.
void end_fast_path(Slab* slab) { __atomic_store_n(&slab->limit, 0, __ATOMIC_RELAXED); }

// Of a page's blocks all are free with odds of e^-(blocks in use / pages of the slab), where chance decides which are.
bool may_have_an_empty_page(const Slab* slab, uint32_t used) {
  return used < 5 * slab_granules(slab->size_class) * (kGranule / os::page_size());
}

void set_holes(Slab* slab, uint64_t holes) { __atomic_store_n(&slab->holes, holes, __ATOMIC_RELAXED); }

}  // namespace

bool in_hole(const Slab* slab, size_t offset) {
  const uint64_t holes = __atomic_load_n(&slab->holes, __ATOMIC_RELAXED);
  return holes != 0 && (holes & pages_of(offset, block_size(slab->size_class))) != 0;
}

uint64_t plan_holes(Slab* slab, BlockSet* free) {
  uint64_t used = 0;
  for (uint32_t number = 0; number < slab->carved; ++number) {
    const uint64_t pages = pages_of_block(slab, number);
    if (!free->has(number) && (pages & slab->holes) == 0) used |= pages;
  }
  const uint64_t fresh = pages_of(0, slab->carved * block_size(slab->size_class)) & ~used & ~slab->holes;
  if (fresh == 0) return 0;
  const uint64_t holes = slab->holes | fresh;
  for (uint32_t number = 0; number < slab->carved; ++number) {
    if (!free->has(number) || (pages_of_block(slab, number) & holes) == 0) continue;
    free->remove(number);
    ++slab->in_holes;
  }
  set_holes(slab, holes);
  return fresh;
}

size_t purge_holes(Slab* slab, uint64_t fresh) {
  char* const start = start_of(slab);
  page_heap.end_huge_pages(slab, slab_granules(slab->size_class));
  size_t total = 0;
  while (fresh != 0) {  // each row of pages
    const int first = std::countr_zero(fresh);
    const int count = std::countr_one(fresh >> first);
    const size_t bytes = static_cast<size_t>(count) * os::page_size();
    if (os::purge(start + static_cast<size_t>(first) * os::page_size(), bytes)) total += bytes;
    fresh &= first + count == 64 ? 0 : ~uint64_t{0} << (first + count);
  }
  return total;
}

size_t purge_uncarved(Slab* slab) {
  if (slab->rest_purged) return 0;
  char* const start = start_of(slab);
  const size_t from = slab->carved * block_size(slab->size_class);
  const size_t first = round_up(from, os::page_size());
  const size_t bytes = slab_granules(slab->size_class) * kGranule - first;
  if (bytes == 0) return 0;
  const bool any_huge = page_heap.end_huge_pages(slab, slab_granules(slab->size_class));
  if (slab->fresh && !any_huge) {  // there is no memory
    slab->rest_purged = true;
    return 0;
  }
  if (!os::purge(start + first, bytes)) return 0;
  slab->rest_purged = true;
  // The rest of the page in which the last block ends. (Where that is a hole, it is zero.)
  if (!slab->fresh && first > from && (slab->holes & pages_of(from, 1)) == 0) memset(start + from, 0, first - from);
  slab->fresh = true;
  return bytes;
}

bool is_worth_a_walk(Slab* slab, Which which, uint32_t free) {
  const uint32_t used = used_of(slab) - free;
  const uint16_t now = static_cast<uint16_t>(used + 1);
  if (which != Which::kAll) {
    // Half a page's blocks, one at least.
    const uint32_t few = static_cast<uint32_t>(os::page_size() / 2 / block_size(slab->size_class)) | 1;
    if (slab->walked_with != 0 && now + few > slab->walked_with) return false;
    if (!may_have_an_empty_page(slab, used)) return false;
    if (std::exchange(slab->seen_with, now) != now && which == Which::kSettled) return false;
  }
  slab->walked_with = now;
  return true;
}

size_t make_holes(Slab* slab) {
  if (slab->free == nullptr) return 0;
  char* const start = start_of(slab);
  BlockSet free;
  add_list(&free, slab, start, slab->free, slab->free);
  const uint64_t fresh = plan_holes(slab, &free);
  if (fresh == 0) return 0;
  slab->free = link(slab, start, free);
  end_fast_path(slab);
  return purge_holes(slab, fresh);
}

size_t make_holes_aside(Slab* slab, Ready ready, HeldBack held) {
  char* const start = start_of(slab);
  BlockSet free;
  Block* first = slab->kept;
  add_list(&free, slab, start, first, first);
  uint32_t freed = add_list(&free, slab, start, ready.first, ready.second);
  add_held(&free, slab, start, held);
  const uint64_t fresh = plan_holes(slab, &free);
  if (fresh == 0) return 0;
  for (const HeldBlock& one : held) {
    const uint32_t number = number_of(slab, start, one.block);
    if (free.has(number)) {
      free.remove(number);
    } else {
      *one.place = nullptr;
      ++freed;
    }
  }
  slab->kept = link(slab, start, free);
  slab->ready = ready.first;
  slab->freed_aside = static_cast<uint16_t>(freed);
  slab->aside = true;
  // Where it is another one by now, the step that might come has come.
  __atomic_compare_exchange_n(&slab->free, &first, nullptr, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  end_fast_path(slab);
  return purge_holes(slab, fresh);
}

bool only_held_back(const Slab* slab, HeldBack held) {
  // A free that is under way has two things to do, in either order: its block is in the list, and it is counted. If
  // that ends the countdown, there is a third.
  const uint32_t countdown = __atomic_load_n(&slab->countdown, __ATOMIC_RELAXED);
  if (countdown == 0 || static_cast<uint16_t>(slab->used_after + countdown) != held.size()) return false;
  char* const start = start_of(slab);
  BlockSet free;
  const uint32_t listed = add_list(&free, slab, start, slab->kept, slab->kept);
  add_held(&free, slab, start, held);
  return listed + held.size() == usable_of(slab);
}

void end_aside(Slab* slab, Block** list) {
  slab->aside = false;
  if (Block* const freed = slab->free) {
    set_next(freed, slab->kept);
  } else {
    slab->free = slab->kept;
  }
  if (slab->ready == nullptr) return;
  if (*list == slab->ready) {
    set_next(*list, nullptr);
  } else {
    *list = nullptr;
  }
}

Blocks fill_hole(Slab* slab) {
  const size_t size = block_size(slab->size_class);
  uint64_t holes = slab->holes;
  Blocks made = {0, 0};
  while (made.count == 0 && holes != 0) {
    const size_t page = static_cast<size_t>(std::countr_zero(holes));
    holes &= holes - 1;
    made.first = static_cast<uint32_t>(page * os::page_size() / size);
    const uint32_t end =
        static_cast<uint32_t>(std::min<size_t>(((page + 1) * os::page_size() - 1) / size + 1, slab->carved));
    while (made.first + made.count < end && (pages_of_block(slab, made.first + made.count) & holes) == 0) ++made.count;
  }
  slab->in_holes = static_cast<uint16_t>(slab->in_holes - made.count);
  set_holes(slab, holes);
  if (holes == 0) set_carved(slab, slab->carved);
  return made;
}

}  // namespace annex
