// Holes: pages of a slab in which no block is in use, given back to the system while others of the slab are in use.
//
// A free block a part of which lies in a hole can't be had, as it has no link and no mark any more: it is in no list,
// and its bit in the offload flavour's bitmap is 0. So every free of a block of such a slab goes the slow way, where
// the record says which blocks those are (core/block.h, front/offload.cpp): its limit is 0 (core/slab_record.h), its
// words in the class map say so (support/side_tables.h). A hole is filled when the heap has no other block of the
// class: its blocks are made again, and with the last one the fast path is back.
//
// Synchronization: the slab's, but for in_hole(), which any thread may ask of a block that it holds, or thinks that it
// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/slab_record.h"

namespace annex {

// Whether a part of the block that starts so many bytes after the slab's start lies in a hole.
bool in_hole(const Slab* slab, size_t offset);

// Of a slab whose free blocks are linked: gives back each page in which no block is in use. Its list then has the
// others alone, in order of address. The bytes. Ends the process where the list has been written to.
size_t make_holes(Slab* slab);

// Gives back the part of the slab of which no blocks have been made yet, once: the memory may have been used before, or
// have been a huge page's. The bytes.
size_t purge_uncarved(Slab* slab);

// Which slabs' free blocks are walked for holes: each is read, and most are in no cache.
enum class Which : uint8_t {
  kAll,
  kPromising,  // those in which a page may be empty that was not when they were last walked
  kSettled,    // of these, those in which as many blocks are in use as when somebody last looked
};
// Also writes down that it has been seen, and, where it is, that it is walked. So many of its blocks are free although
// they count as in use.
bool is_worth_a_walk(Slab* slab, Which which, uint32_t free = 0);
// Holes have been filled, or it is another slab now.
inline void forget_walks(Slab* slab) { slab->walked_with = slab->seen_with = 0; }

// The same while its owner sleeps, for whoever has taken the heap from it (core/heap.h). The owner may have been put to
// sleep anywhere in its fast paths, so that one last step of it may still come, whenever it wakes:
//
//   the first block of the list that is `ready` is handed out: nothing is done to that block
//   a block is freed: it becomes the first of slab->free, and leads to what was the first when the owner looked
//
// What was the first of each list is said from before all threads passed a barrier: slab->kept for the second.
// So neither list is used again as it is: what lies in no hole is kept apart, and the slab is aside until the owner has
// come back, who sees whether there was such a step. `ready` has no blocks where the slab is not current, or its list
// is left alone. Nothing is counted: slab->countdown is the owner's.
struct Ready {
  Block* first;
  Block* second;
};
// Blocks that are free, and count as in use, as the owner holds them back (front/held.h), in order of address. Their
// links and marks are nobody's. One that goes into a hole is no longer held back: its place is emptied.
struct HeldBlock {
  Block* block;
  void** place;
};
using HeldBack = std::span<const HeldBlock>;
size_t make_holes_aside(Slab* slab, Ready ready, HeldBack held);
// Whether nothing else of a slab that is not current is in use: then it is empty once those are no longer held back,
// and no step of the owner's touches it any more.
bool only_held_back(const Slab* slab, HeldBack held);
// The owner has come back: takes what is in no hole back, as blocks of the slab. `list`: the heap's of its class. The
// slab still counts blocks as used that are not: slab->freed_aside.
void end_aside(Slab* slab, Block** list);

// make_holes() in two steps, for a slab whose free blocks are kept in another way. First, which of its blocks can be
// had.
class BlockSet {
 public:
  bool has(uint32_t number) const { return (words_[number / 64] >> (number % 64) & 1) != 0; }
  void add(uint32_t number) { words_[number / 64] |= uint64_t{1} << (number % 64); }
  void remove(uint32_t number) { words_[number / 64] &= ~(uint64_t{1} << (number % 64)); }

 private:
  uint64_t words_[kGranule / kMinAlignment / 64] = {};
};
// Makes holes of the pages in which no block is in use: those that were none before; 0 where there is none. What lies
// in one can't be had any more, and goes out of the set.
uint64_t plan_holes(Slab* slab, BlockSet* free);
// Then those pages go back. The bytes.
size_t purge_holes(Slab* slab, uint64_t fresh);

// Consecutive blocks of a slab, by number.
struct Blocks {
  uint32_t first;
  uint32_t count;
};
// Of a slab with holes: closes the first ones, until there are blocks that lie in none. Those are the caller's to make.
Blocks fill_hole(Slab* slab);

}  // namespace annex
