// The order of free lists: of address; in the hardened build by chance.
//
// A list is in the order in which its blocks came back. Programs allocate and free in runs, and each time that a list
// is used up its runs are cut at other places, but never joined again. In the end, blocks that are allocated one after
// another lie anywhere in their slab, and a program that goes through them finds nothing fetched ahead. So now and then
// a list is put in order when the heap takes it, which is enough, as runs become short only slowly
// (docs/many-cores.md).
#pragma once

#include <cstdint>

#include "core/free_block.h"
#include "core/slab_record.h"
#include "pages/chance.h"

namespace annex {

inline constexpr uint32_t kLongList = 32;      // blocks; shorter lists are left as they are
inline constexpr uint32_t kTakesInOrder = 16;  // each 16th long list of a slab is put in order

// A list of so many blocks of the size, from the first one on, which are marked as free. `zero`: they are all zeros,
// which they must be in the hardened build.
Block* link_blocks(uint64_t key, char* first, size_t size, uint32_t count, bool zero, Chance* chance);

// The slab's freed blocks are about to be taken: whether they are to be put in order. Not in the hardened build, which
// has them in random order; nor beside holes, where the list is in order since those were made.
inline bool wants_order(Slab* slab) {
  return !kByChance && slab->holes == 0 && slab->carved - used_of(slab) >= kLongList &&
         ++slab->takes % kTakesInOrder == 0;
}

// Links the list of the slab's blocks anew. Ends the process where one has been written to, so that it leads astray.
[[gnu::cold]] Block* in_order(const Slab* slab, Block* list);

}  // namespace annex
