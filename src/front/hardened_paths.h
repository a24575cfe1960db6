// The fast paths of malloc and free in the hardened build: blocks of up to kTinyBlock bytes in slabs of one granule in
// the first arena. What is not of these, and what is wrong, goes the slow way (hardened.cpp), which finds out what it
// is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/die.h"
#include "core/free_block.h"
#include "core/size_class.h"
#include "front/shared.h"
#include "harden/canary.h"
#include "harden/live_blocks.h"
#include "harden/tags.h"
#include "harden/zeros.h"
#include "pages/arena.h"
#include "policy/policy.h"

namespace annex::front::hardened {

using namespace harden;

inline constexpr size_t kTiny = kTinyBlock - kCanaryBytes;
inline constexpr size_t kMostBeside = kMaxSmall - kCanaryBytes;  // a small block's room
inline constexpr bool kChecksZero = Policy::kZeroing && Policy::kChecks;

// The slab in which an address lies, where it is one of one granule in the first arena; else nullptr, which says
// nothing.
[[gnu::always_inline]] inline Slab* slab_at(const void* address) {
  const size_t index = (reinterpret_cast<uintptr_t>(address) - primary.start) >> kGranuleShift;
  if (index >= primary_granules()) [[unlikely]]
    return nullptr;
  Granule* const granule = primary_granule(primary.start, index);
  return as_slab(granule);
}

// The first block of the list becomes one of so many bytes, of which no state is rounded.
[[gnu::always_inline]] inline void* hand_out_tiny(Block** list, SizeClass c, size_t bytes) {
  Block* const block = *list;
  const uint64_t canary = canary_of(block);  // before anything is stored: the list is sealed with the same product
  *list = next_of(block);
  unmarked(block);
  block->next = nullptr;
  uint8_t* const state = tiny_state_in_first(block);
  if (load(state) != 0) [[unlikely]]
    die_at(kFreedTwice, block);
  const size_t size = block_size(c);
  if (kChecksZero && !is_zero_behind_first(block, size)) [[unlikely]]
    die_at(kWrittenAfterFree, block);
  store(state, static_cast<uint8_t>(size - kCanaryBytes - bytes + 1));
  set_canary(block, bytes, canary);
  return tagged(block, size);
}

// A larger one.
void* hand_out_larger(Block** list, SizeClass c, size_t bytes);

// A block leaves the quarantine, and goes the shared flavour's way.
void leave(void* block);

// The same, where it lies in a slab of one granule in the first arena: it is counted as in core/release.h. That it is a
// block is known; one that is in use again, or in a list, is not all zeros, or is found when it is handed out.
[[gnu::always_inline]] inline void leave_quickly(void* address) {
  Slab* const slab = slab_at(address);
  Block* const block = static_cast<Block*>(address);
  if (slab == nullptr || !is_zero(block, sizeof(Block))) [[unlikely]]
    return leave(address);
  const uint64_t key = slab->key;
  if (owner_in(key) != thread_number) return Shared::release_foreign(block, slab, key);
  set_next(block, slab->free);
  mark_free(key, block);
  std::atomic_signal_fence(std::memory_order_release);  // as in core/release.h
  slab->free = block;
  if (--slab->countdown == 0) [[unlikely]]
    Shared::settle(slab);
}

// All zeros, and no longer in use: into the quarantine, also that of a thread that has none yet.
void hold_back(SizeClass c, void* block);

// A block of more than kTinyBlock bytes, or with something wrong.
void release_in(Slab* slab, void* pointer, size_t bytes);

// slow(bytes) where no block of the first arena is at hand.
template <void* slow(size_t)>
[[gnu::always_inline]] inline void* allocate(size_t bytes) {
  if (bytes - 1 < kTiny) [[likely]] {
    const SizeClass c = class_of_tiny(bytes + kCanaryBytes);
    Block** const list = &thread_heap->free[c];
    // One comparison for both: no list, and a block in another arena.
    if (in_primary(*list)) [[likely]]
      return hand_out_tiny(list, c, bytes);
  } else if (bytes - 1 < kMostBeside) {
    const SizeClass c = class_of(bytes + kCanaryBytes);
    Block** const list = &thread_heap->free[c];
    if (in_primary(*list)) return hand_out_larger(list, c, bytes);
  }
  return slow(bytes);
}

// elsewhere(pointer, bytes) where the address is in no slab of one granule in the first arena.
template <void elsewhere(void*, size_t)>
[[gnu::noinline]] void release(void* pointer, size_t bytes) noexcept {
  void* const block = os::without_tag(pointer);
  Slab* const slab = slab_at(block);
  if (slab == nullptr) [[unlikely]]
    return elsewhere(pointer, bytes);
  const SizeClass c = slab->size_class;
  const size_t size = block_size(c);
  if (size > kTinyBlock) return release_in(slab, pointer, bytes);
  uint8_t* const state = tiny_state_in_first(block);
  const size_t known = load(state);
  if (known == 0 || reinterpret_cast<uintptr_t>(block) % kMinAlignment != 0) [[unlikely]]
    return release_in(slab, pointer, bytes);
  const size_t room = size - kCanaryBytes + 1 - known;
  if (room != bytes && bytes != 0) [[unlikely]]
    return release_in(slab, pointer, bytes);
  take_tag(pointer, block, size);  // before the block is read
  if (!canary_stands(block, room)) [[unlikely]]
    die(kWrittenBehind, block, slab);
  store(state, 0);
  set_zero(block, Policy::kZeroing ? size : sizeof(Block));
  // A thread without a heap has a quarantine that has not started.
  Quarantine& held = thread_heap->held;
  if (!held.has_started()) [[unlikely]]
    return hold_back(c, block);
  void* const leaves = Policy::kQuarantine ? held.exchange_small(block) : block;
  if (leaves != nullptr) leave_quickly(leaves);
}

}  // namespace annex::front::hardened
