// Which small blocks are in use, and for how many bytes: a byte for each, its state, apart from the blocks.
//
//   0   not in use
//   n   in use, and its room for the program ends (n - 1) units before the block's last 8 bytes
//
// There are two tables: one with a byte for each 16 of the arena, for blocks of up to 256 bytes, and one with a byte
// for each 256, for larger ones. The first has one for each address that a block can have; in the second, addresses
// within the first 256 bytes of a block have that block's, so whoever looks there must know that a block starts at the
// address.
//
// So whether a pointer may be freed is never read from memory that a program writes, and an invalid or double free is
// found whatever was done to the block. What a program asked for is known to a unit: a byte in blocks of up to 4 KiB
// (two at most, above 2 KiB), 2, 4 or 8 bytes above.
//
// Each table lies at a random place of the address space, with nothing mapped around it. 4 KiB of the first serve 64
// KiB of blocks, of the second 1 MiB.
//
// Synchronization: a byte is written by whoever allocates or frees the block; two threads that free one block at the
// same moment may both find it in use. Then it is found to be free when it leaves the quarantine, or in use when it is
// handed out (front/hardened.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "pages/arena.h"

namespace annex::harden {

// Behind the room of each small block.
inline constexpr size_t kCanaryBytes = 8;

constexpr unsigned unit_shift(SizeClass c) {
  return block_size(c) <= 4096 ? 0 : block_size(c) <= 8192 ? 1 : block_size(c) <= 16384 ? 2 : 3;
}

// For a request of so many bytes, which with the canary fit into the block.
constexpr uint8_t state_for(SizeClass c, size_t bytes) {
  const size_t spare = (block_size(c) - kCanaryBytes - bytes) >> unit_shift(c);
  return static_cast<uint8_t>(std::min<size_t>(spare, 254) + 1);
}
constexpr size_t room_in(SizeClass c, uint8_t state) {
  return block_size(c) - kCanaryBytes - ((size_t{state} - 1) << unit_shift(c));
}

inline constexpr size_t kTinyBlock = 256;

// A table's parts, one for each arena, moved so that an address's state is at part + (address >> shift).
struct alignas(64) StateTable {
  uint8_t* first;  // of the first arena, for the fast paths
  uint8_t* all[kMaxArenas];
};
inline constexpr unsigned kTinyShift = 4;    // kMinAlignment
inline constexpr unsigned kLargerShift = 8;  // kTinyBlock: no two larger blocks start in the same 256 bytes
extern constinit StateTable tiny_states [[gnu::visibility("hidden")]];
extern constinit StateTable larger_states [[gnu::visibility("hidden")]];

// For pages/arena.h's commit_side_tables.
os::MapResult commit_states(const Arena& arena, size_t end);

// For purge_side_tables: the states of free runs, all of which are 0.
void purge_states(const Locked& lock);

// Of an address in the first arena: in a slab of blocks of up to kTinyBlock bytes, or of larger ones.
[[gnu::always_inline]] inline uint8_t* tiny_state_in_first(const void* address) {
  return tiny_states.first + (reinterpret_cast<uintptr_t>(address) >> kTinyShift);
}
[[gnu::always_inline]] inline uint8_t* larger_state_in_first(const void* address) {
  return larger_states.first + (reinterpret_cast<uintptr_t>(address) >> kLargerShift);
}
// The same in any arena. tiny_state_of: also where empty blocks are.
inline uint8_t* tiny_state_of(const void* address) {
  return tiny_states.all[arena_of(address)->number()] + (reinterpret_cast<uintptr_t>(address) >> kTinyShift);
}
inline uint8_t* larger_state_of(const void* address) {
  return larger_states.all[arena_of(address)->number()] + (reinterpret_cast<uintptr_t>(address) >> kLargerShift);
}
inline uint8_t* state_of(SizeClass c, const void* block) {
  return block_size(c) <= kTinyBlock ? tiny_state_of(block) : larger_state_of(block);
}

inline uint8_t load(const uint8_t* state) { return __atomic_load_n(state, __ATOMIC_RELAXED); }
inline void store(uint8_t* state, uint8_t value) { __atomic_store_n(state, value, __ATOMIC_RELAXED); }

}  // namespace annex::harden
