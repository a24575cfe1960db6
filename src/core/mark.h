// The mark of a free block, in its second word: by it free() sees that a block is freed twice, or was never allocated,
// whatever list the block is on and whichever thread put it there.
//
//   mark = key ^ address      the key is the slab's, and another one each time that a slab is made (core/slab_record.h)
//
// A block is marked when it is made and when it is freed, and malloc clears the word. So no live block holds a mark of
// its slab as it is now: what a program may copy out of memory that it never wrote is a mark of a slab that is no more.
// That such a one is right again by chance, in the same place, has odds of one in 65,536 each time that the program
// copies it there; any other word, of 2^-64. A mark is no address of a program: those have 47 bits, and a key more.
//
// What overwrites a block after it is freed destroys its mark.
#pragma once

#include <cstdint>

namespace annex {

inline uintptr_t mark_of(uint64_t key, const void* block) { return key ^ reinterpret_cast<uintptr_t>(block); }

}  // namespace annex
