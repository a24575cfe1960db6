// Addresses that must not be freed; see misuse_target.h.
#include "fuzz/misuse_target.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "annex/annex.h"
#include "common/opaque.h"

namespace annex_test {
namespace {

constexpr std::size_t kGranule = 65536;
constexpr std::size_t kMetadata = std::size_t{1} << 30;  // of the first arena, by default; a guess will do

char in_static_storage[4096];

char* plus(const void* address, std::size_t bytes) { return static_cast<char*>(const_cast<void*>(address)) + bytes; }

// --- what the arena looks like --------------------------------------------------------------------------------------

struct Query {
  const void* address = nullptr;  // which region holds it?
  std::size_t block_size = 0;     // or: is there a slab of such blocks?
  annex_region found = {};
  const char* lowest = nullptr;  // of all regions
  const char* highest = nullptr;
  std::size_t free_runs = 0;
  std::size_t nth_free_run = 0;  // is in `free_run`
  annex_region free_run = {};
};

int visit(const annex_region* region, void* context) {
  Query* query = static_cast<Query*>(context);
  const char* start = static_cast<const char*>(region->start);
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(query->address) - start);
  const bool holds_it = query->address != nullptr && offset < region->bytes;
  const bool of_the_size =
      query->block_size != 0 && region->kind == ANNEX_REGION_SLAB && region->block_size == query->block_size;
  if (holds_it || of_the_size) query->found = *region;
  if (query->lowest == nullptr || start < query->lowest) query->lowest = start;
  if (start + region->bytes > query->highest) query->highest = start + region->bytes;
  if (region->kind == ANNEX_REGION_FREE && query->free_runs++ == query->nth_free_run) query->free_run = *region;
  return 0;
}

Query look(const void* address, std::size_t block_size = 0, std::size_t nth_free_run = 0) {
  Query query;
  query.address = address;
  query.block_size = block_size;
  query.nth_free_run = nth_free_run;
  annex_heap_walk(visit, &query);
  return query;
}

// --- kinds ----------------------------------------------------------------------------------------------------------

// A block that a member holds; nullptr where nobody holds any.
const Held* draw_held(Random* random, Crew* crew) {
  for (int tries = 0; tries < 64; ++tries) {
    const Ledger& ledger = crew->ledger(crew->draw(random));
    if (ledger.held() > 0) return &ledger.held(random->below(ledger.held()));
  }
  return nullptr;
}

struct Order {
  Crew* crew;
  std::size_t index;
};

void release_one(std::size_t member, void* argument) {
  Order* order = static_cast<Order*>(argument);
  if (!order->crew->ledger(member).release(order->index)) abort();
}

void give_back(std::size_t, void*) { annex_purge(); }

Target twice_at_once(Random* random, Crew* crew) {
  const std::size_t member = crew->draw(random);
  Ledger& ledger = crew->ledger(member);
  if (ledger.held() == 0) return {};
  Order order = {crew, random->below(ledger.held())};
  crew->run(member, release_one, &order);
  return {Wrong::kTwiceAtOnce, ledger.freed(0).start, ledger.freed(0).bytes};
}

// A freed block whose address is not in use again, from `newest` to `oldest` of its ledger; 0 is the newest.
Target freed_before(Random* random, Crew* crew, Wrong wrong, std::size_t newest, std::size_t oldest, bool moved) {
  for (int tries = 0; tries < 64; ++tries) {
    const Ledger& ledger = crew->ledger(random->below(Crew::kMost));
    if (ledger.freed() <= newest) continue;
    const Freed& block = ledger.freed(random->between(newest, std::min(oldest, ledger.freed() - 1)));
    if (block.moved == moved && !crew->live(block.start)) return {wrong, block.start, block.bytes};
  }
  return {};
}

Target interior(Random* random, Crew* crew) {
  const Held* block = draw_held(random, crew);
  if (block == nullptr) return {};
  const std::size_t usable = annex_usable_size(block->start);
  const std::size_t granularity[] = {1, 8, 16, 4096, kGranule};
  const std::size_t step = granularity[random->below(std::size(granularity))];
  const std::size_t steps = (usable - 1) / step;
  const std::size_t offset = steps > 0 ? step * random->between(1, steps) : random->between(1, usable - 1);
  return {Wrong::kInterior, block->start + offset, usable};
}

// The first block of a class that has no slab yet, so that nobody but this trial has ever had a block of it. The class
// of most sizes is in use after much traffic: then there is none.
const Held* first_of_new_slab(Random* random, Crew* crew, std::size_t most_bytes) {
  for (int tries = 0; tries < 100; ++tries) {
    const std::size_t shift = random->below(8);
    const std::size_t bytes = (9 + random->below(8)) << (4 + shift);
    if (bytes > most_bytes || look(nullptr, bytes).found.start != nullptr) continue;
    const Held* block = crew->ledger(0).allocate_plainly(random, bytes);
    if (block == nullptr) return nullptr;
    const annex_region slab = look(block->start).found;
    if (slab.start == block->start && slab.block_size == bytes) return block;
  }
  return nullptr;
}

Target never_handed_out(Random* random, Crew* crew) {
  const Held* block = first_of_new_slab(random, crew, 16384);
  if (block == nullptr) return {};
  const annex_region slab = look(block->start).found;
  const std::size_t ahead = random->between(1, std::min<std::size_t>(slab.blocks - 1, 40));
  return {Wrong::kNeverHandedOut, plus(slab.start, ahead * slab.block_size), slab.block_size};
}

Target unmade(Random* random, Crew* crew) {
  const Held* block = random->chance(50) ? first_of_new_slab(random, crew, 24576) : draw_held(random, crew);
  if (block == nullptr) return {};
  const annex_region slab = look(block->start).found;
  if (slab.kind != ANNEX_REGION_SLAB || slab.blocks < 3) return {};
  const std::size_t at = slab.blocks - 1 - random->below(std::min<std::size_t>(slab.blocks / 2, 8));
  return {Wrong::kUnmade, plus(slab.start, at * slab.block_size), slab.block_size};
}

Target tail(Random* random, Crew* crew) {
  for (int tries = 0; tries < 64; ++tries) {
    const Held* block = draw_held(random, crew);
    if (block == nullptr) return {};
    const annex_region slab = look(block->start).found;
    const std::size_t used = slab.blocks * slab.block_size;
    if (slab.kind != ANNEX_REGION_SLAB || used == slab.bytes) continue;
    const std::size_t offset = random->chance(50) ? 0 : random->below(slab.bytes - used);
    return {Wrong::kTail, plus(slab.start, used + offset), 0};
  }
  return {};
}

Target foreign(Random* random) {
  static char* const mapped =
      static_cast<char*>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char on_the_stack[256];
  const std::size_t any = random->next();
  char* const places[] = {
      static_cast<char*>(opaque(on_the_stack)) + any % 16 * 16,
      in_static_storage + any % 256 * 16,
      mapped + any % 4096 * 256,
      reinterpret_cast<char*>(&fprintf),
      reinterpret_cast<char*>(&annex_version),
      reinterpret_cast<char*>(getauxval(AT_BASE)) + any % 256 * 16,
      reinterpret_cast<char*>(getauxval(AT_SYSINFO_EHDR)) + 64,
      reinterpret_cast<char*>(any | std::uintptr_t{1} << 63),     // no user's address
      reinterpret_cast<char*>((any & ~std::uintptr_t{15}) >> 1),  // most likely beyond the address space, or nowhere
      reinterpret_cast<char*>(1 + any % 4096),
      reinterpret_cast<char*>(~std::uintptr_t{15}),
  };
  char* const address = places[random->below(std::size(places))];
  return address == nullptr ? Target{} : Target{Wrong::kForeign, address, 0};
}

Target in_arena(Random* random) {
  const Query all = look(nullptr, 0, random->below(64));
  if (all.lowest == nullptr) return {};
  const std::size_t any = random->next() & ~std::size_t{15};
  const std::size_t run = all.free_run.bytes;
  const char* const places[] = {
      all.lowest - kMetadata + any % kMetadata,  // the metadata
      all.lowest - 16 - any % kGranule,
      all.highest + any % (std::size_t{256} << 30),  // the end, never used
      all.highest + any % (std::size_t{4} << 20),
      run > 0 ? static_cast<const char*>(all.free_run.start) + any % run : nullptr,
      run > 0 ? static_cast<const char*>(all.free_run.start) + any % run / kGranule * kGranule : nullptr,
  };
  const char* const address = places[random->below(std::size(places))];
  if (address == nullptr) return {};
  const annex_region found = look(address).found;
  const bool used = found.kind == ANNEX_REGION_SLAB || found.kind == ANNEX_REGION_SPAN;
  return used ? Target{} : Target{Wrong::kArena, const_cast<char*>(address), 0};
}

Target draw_target(Wrong wanted, Random* random, Crew* crew) {
  switch (wanted) {
    case Wrong::kTwiceAtOnce:
      return twice_at_once(random, crew);
    case Wrong::kTwiceSoon:
      return freed_before(random, crew, wanted, 1, kSoon, false);
    case Wrong::kTwiceLate:
      return freed_before(random, crew, wanted, kSoon + 1, Ledger::kMostFreed, false);
    case Wrong::kTwiceAfterTrim:
      random->chance(50) ? crew->run_all(give_back, nullptr) : crew->run(crew->draw(random), give_back, nullptr);
      return freed_before(random, crew, wanted, 0, Ledger::kMostFreed, false);
    case Wrong::kAfterRealloc:
      return freed_before(random, crew, wanted, 0, Ledger::kMostFreed, true);
    case Wrong::kInterior:
      return interior(random, crew);
    case Wrong::kUnmade:
      return unmade(random, crew);
    case Wrong::kNeverHandedOut:
      return never_handed_out(random, crew);
    case Wrong::kTail:
      return tail(random, crew);
    case Wrong::kForeign:
      return foreign(random);
    case Wrong::kArena:
      return in_arena(random);
    default:
      return {};
  }
}

}  // namespace

Target choose_target(Wrong wanted, Random* random, Crew* crew) {
  for (;;) {
    for (int tries = 0; tries < 8; ++tries) {
      const Target target = draw_target(wanted, random, crew);
      if (target.wrong != Wrong::kNothing && !crew->live(target.address)) return target;
    }
    wanted = static_cast<Wrong>(random->between(1, kKinds - 1));
  }
}

}  // namespace annex_test
