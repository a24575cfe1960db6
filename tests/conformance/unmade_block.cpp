// Frees of places in a slab where there is no block yet, of blocks that were made and never handed out, and of what a
// slab has behind its last block; and other uses of them that look at the heap.
#include <gtest/gtest.h>
#include <malloc.h>

#include <iterator>
#include <new>

#include "invalid_free.h"

using namespace annex_test;

namespace {

struct Search {
  const void* address;
  annex_region found;
};

annex_region region_of(const void* address) {
  Search search = {address, {}};
  annex_heap_walk(
      [](const annex_region* region, void* context) {
        Search* wanted = static_cast<Search*>(context);
        const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(wanted->address) -
                                                            static_cast<const char*>(region->start));
        if (offset < region->bytes) wanted->found = *region;
        return 0;
      },
      &search);
  return search.found;
}

// The slabs with blocks in use when the scenario began: libc or the test's own libraries have some.
struct Known {
  const void* starts[4096];
  std::size_t count;
};

const Known& known_slabs() {
  static Known known = {};
  annex_heap_walk(
      [](const annex_region* region, void* context) {
        Known* all = static_cast<Known*>(context);
        SCENARIO_CHECK(all->count < std::size(all->starts));
        if (region->kind == ANNEX_REGION_SLAB && region->used > 0) all->starts[all->count++] = region->start;
        return 0;
      },
      &known);
  return known;
}

// A slab of the scenario's size out of which one block has been handed out, its first one.
annex_region new_slab() {
  const Known& known = known_slabs();
  for (int i = 0; i < 10000; ++i) {
    const void* block = opaque(malloc(argument_bytes()));
    const annex_region region = region_of(block);
    SCENARIO_CHECK(region.kind == ANNEX_REGION_SLAB);
    const void* const* end = known.starts + known.count;
    if (region.start == block && std::find(known.starts, end, block) == end) return region;
  }
  SCENARIO_CHECK(!"there comes a new slab");
  return {};
}

char* place(const annex_region& slab, std::size_t index) {
  return static_cast<char*>(const_cast<void*>(slab.start)) + index * slab.block_size;
}
char* second_block(const annex_region& slab) { return place(slab, 1); }
char* middle_block(const annex_region& slab) { return place(slab, slab.blocks / 2); }
char* last_block(const annex_region& slab) { return place(slab, slab.blocks - 1); }
char* tail(const annex_region& slab) {
  SCENARIO_CHECK(slab.blocks * slab.block_size < slab.bytes);
  return place(slab, slab.blocks);
}

// Where the order of blocks is known.
void expect_abort_where_known(std::initializer_list<std::size_t> sizes, const std::string& scenario) {
  if (flavour() == Flavour::kHardened) GTEST_SKIP() << "blocks lie in random order (tests/hardened has its own)";
  expect_abort_for(sizes, scenario);
}

}  // namespace

// Classes of slabs of one granule and of several, of few blocks and of many.
#define UNMADE(name, where, call)                                                                      \
  INVALID_SCENARIO(name, char* block = where(new_slab()), call)                                        \
  TEST(UnmadeBlock, name) {                                                                            \
    expect_abort_where_known({16, 48, 208, 832, 1024, 3584, 9216, 18432, 20480, 24576, 32768}, #name); \
  }

// Those classes whose slabs have a tail.
#define TAIL(name, where, call)                                 \
  INVALID_SCENARIO(name, char* block = where(new_slab()), call) \
  TEST(UnmadeBlock, name) { expect_abort_where_known({48, 208, 832, 3584, 9216, 18432, 20480, 24576}, #name); }

UNMADE(free_of_the_second_block, second_block, free(opaque(block)))
UNMADE(free_of_the_middle_block, middle_block, free(opaque(block)))
UNMADE(free_of_the_last_block, last_block, free(opaque(block)))
UNMADE(free_of_the_second_block_by_another_thread, second_block, free_in_a_thread(block))
UNMADE(free_of_the_last_block_by_another_thread, last_block, free_in_a_thread(block))
UNMADE(free_of_the_last_block_after_trim, last_block, malloc_trim(0); free(opaque(block)))
UNMADE(free_sized_of_the_second_block, second_block, free_sized(opaque(block), argument_bytes()))
UNMADE(delete_of_the_second_block, second_block, ::operator delete(opaque(block)))
UNMADE(sized_delete_of_the_last_block, last_block, ::operator delete(opaque(block), argument_bytes()))
UNMADE(realloc_of_the_second_block, second_block, opaque(realloc(opaque(block), 100000)))
UNMADE(realloc_of_the_last_block, last_block, opaque(realloc(opaque(block), argument_bytes())))
UNMADE(usable_size_of_the_second_block, second_block, opaque(malloc_usable_size(opaque(block))))
UNMADE(usable_size_of_the_last_block, last_block, opaque(malloc_usable_size(opaque(block))))

TAIL(free_of_the_tail, tail, free(opaque(block)))
TAIL(free_of_the_tail_by_another_thread, tail, free_in_a_thread(block))
TAIL(free_inside_the_tail, tail, free(opaque(block + 8)))
TAIL(delete_of_the_tail, tail, ::operator delete(opaque(block)))
TAIL(realloc_of_the_tail, tail, opaque(realloc(opaque(block), 100000)))
TAIL(usable_size_of_the_tail, tail, opaque(malloc_usable_size(opaque(block))))

// A slab that is used to its end has nothing unmade, but its tail stays one.
ANNEX_SCENARIO(free_of_a_full_slabs_tail) {
  const annex_region slab = new_slab();
  for (std::size_t i = 1; i < slab.blocks; ++i) opaque(malloc(argument_bytes()));
  char* behind = tail(slab);
  reached();
  free(opaque(behind));
  return survived();
}
TEST(UnmadeBlock, free_of_a_full_slabs_tail) {
  expect_abort_where_known({48, 208, 832, 3584, 9216, 18432, 20480, 24576}, "free_of_a_full_slabs_tail");
}
