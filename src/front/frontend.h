// What a front end is: the door that a library is built with, one of the flavours (shared.h, solo.h, offload.h,
// hardened.h). Which one is chosen when the library is compiled (front.h), so that nothing is decided at run time.
//
// Synchronization: any thread may call any of these at any time, but where something else is said.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/sample_points.h"
#include "core/slab_record.h"
#include "pages/granule.h"

namespace annex::front {

// What there is to know of a live block without more work than the flavour must do.
struct Found {
  size_t usable;
  Span* span;  // its metadata, where it is a span; else nullptr
};

struct HeapCounts {
  uint64_t heaps = 0;
  uint64_t refills = 0;
  uint64_t remote_batches = 0;
  uint64_t support_cpu_us = 0;
};

template <class F>
concept Frontend = requires(size_t bytes, size_t alignment, void* block, Span* span, const Slab* slab) {
  // malloc; nullptr and errno ENOMEM where memory is exhausted. Inline but for the slow path, in whose place another
  // may be put: allocate<slow>.
  { F::allocate(bytes) } -> std::same_as<void*>;
  { F::allocate_slow(bytes) }
  noexcept->std::same_as<void*>;
  { F::allocate_zeroed(bytes) } -> std::same_as<void*>;              // calloc
  { F::allocate_aligned(alignment, bytes) } -> std::same_as<void*>;  // the alignment is a power of two
  { F::release(block) }
  noexcept->std::same_as<void>;  // free; inline but for the slow path, and for what is out of reach: release<elsewhere>
  { F::look_up(block) } -> std::same_as<Found>;
  { F::resize(span, bytes) } -> std::same_as<bool>;  // in place
  { F::move(span, bytes) } -> std::same_as<void*>;   // to a longer one, by its pages (core/span.h: move_span)
  // Everything free goes back to the system; bytes. Whether of slabs in use the pages do in which no block is: that
  // takes time for each block, and makes no room for what the system or a limit refuses.
  { F::give_back(true) } -> std::same_as<size_t>;
  // Where the calling thread keeps where its next samples of a heap profile fall (which is nullptr before the first);
  // nullptr where it has no heap. Whether a block of a slab is free, as of a moment ago; for whoever holds
  // profile::lock.
  { F::sample_points() } -> std::same_as<SamplePoints**>;
  { F::is_free_block(slab, block) } -> std::same_as<bool>;
  // For statistics: first of all, since what is on its way is taken in.
  { F::count_heaps() } -> std::same_as<HeapCounts>;
  // When the library has been loaded; first of all, unless something was allocated before.
  { F::start() } -> std::same_as<void>;
  // All locks but the page heap's, in the order of os/fork.h; then, where the other threads are no more.
  { F::hold_locks_for_fork() } -> std::same_as<void>;
  { F::after_fork_in_child() } -> std::same_as<void>;
  { F::kName[0] } -> std::convertible_to<char>;  // "shared"
};

}  // namespace annex::front
