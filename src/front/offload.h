// Offload: the flavour for programs with a core to spare (NextGen-Malloc; SpeedMalloc's software half). The support
// core (support/) owns all slabs; a program thread has magazines of blocks, and neither malloc nor free touches
// metadata:
//
//  - malloc: the class's magazine; if that is empty, the stash that the support core keeps filled
//  - free: the class of the pointer from the class map, then its magazine, whose older half is sent back if it is full
//
// Where no support thread is awake, a program thread does its work for itself, under its heap's lock. The papers'
// protocols (support/protocol.h) differ on the slow path only.
//
// Where the process may run on one CPU only, when it starts, there is no core to spare: it goes the shared flavour's
// way (shared.h), for which nothing is found to be the support core's: no address is mapped, no request small enough.
// Which way, is decided before the process makes its first arena.
//
// Thread-local storage: 36 bytes, initial-exec, so that the library can be dlopened.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/free_block.h"
#include "front/frontend.h"
#include "front/shared.h"
#include "front/thread_client.h"
#include "os/all_threads.h"
#include "pages/granule.h"
#include "support/side_tables.h"

namespace annex::front {

struct Offload : Shared {
  static constexpr char kName[] = "offload";

  [[gnu::noinline]] static void* allocate_slow(size_t bytes) noexcept;
  [[gnu::noinline]] static void release_slow(void* block) noexcept;
  template <void* slow(size_t) = allocate_slow>
  static void* allocate(size_t bytes);
  template <void elsewhere(void*) = release_slow>
  static void release(void* block) noexcept;
  static void* allocate_zeroed(size_t bytes);
  static void* allocate_aligned(size_t alignment, size_t bytes);
  static Found look_up(const void* block);
  static bool resize(Span* span, size_t bytes);
  static size_t give_back(bool holes = true);
  static HeapCounts count_heaps();
  static SamplePoints** sample_points();
  static bool is_free_block(const Slab* slab, const void* block);
  static void start();
  static void hold_locks_for_fork();
  static void after_fork_in_child();
};

template <void* slow(size_t)>
[[gnu::always_inline]] inline void* Offload::allocate(size_t bytes) {
  // 0: the shared flavour's way, or none yet; then shared.h finds no list, and it is for slow() to decide. Seldom for a
  // process with a core to spare, but no cold code: all calls of one with a single CPU come here.
  const size_t largest = __atomic_load_n(&support::mapped.largest_request, __ATOMIC_RELAXED);
  if (__builtin_expect_with_probability(bytes > largest, 0, 0.6))
    return largest == 0 ? Shared::allocate<slow>(bytes) : slow(bytes);
  support::Magazine& magazine = thread_magazines->at_tag(support::tag_of_tiny(bytes));
  void** const top = magazine.ready;
  void* const block = top[-1];
  if (block == nullptr) [[unlikely]]
    return slow(bytes);
  magazine.ready = top - 1;
  return unmarked(block);
}

template <void elsewhere(void*)>
[[gnu::always_inline]] inline void Offload::release(void* address) noexcept {
  const size_t offset = static_cast<size_t>(static_cast<char*>(address) - support::mapped.base);
  const size_t bytes = __atomic_load_n(&support::mapped.bytes, __ATOMIC_RELAXED);  // 0: as in allocate
  if (__builtin_expect_with_probability(offset >= bytes, 0, 0.6))
    return bytes == 0 ? Shared::release<elsewhere>(address) : elsewhere(address);
  const uint64_t word = __atomic_load_n(support::mapped.map + (offset >> kGranuleShift), __ATOMIC_RELAXED);
  support::Magazine& magazine = thread_magazines->at_tag(support::tag_in(word));
  const uint32_t within = static_cast<uint32_t>(offset % kGranule);
  // Behind all blocks that anyone was ever given, or not the start of a block of a slab of one granule?
  if (within >= support::end_in(word) || within * magazine.magic >= magazine.magic) [[unlikely]]
    return release_slow(address);
  Block* const block = static_cast<Block*>(address);
  void** const top = magazine.returned;
  if (is_marked(support::key_in(word), block) || top == magazine.limit) [[unlikely]]
    return release_slow(address);
  *top = address;
  mark_free(support::key_in(word), block);
  // The block is there before it is said to be, for whoever takes the magazine (support/magazine.h: take_asleep).
  os::store_last(magazine.returned, top + 1);
}

}  // namespace annex::front
