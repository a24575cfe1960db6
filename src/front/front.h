// The door that this library is built with: one of the flavours below, chosen when the library is compiled, so that
// nothing is decided at run time. Each provides, in namespace annex::front:
//
//   void* allocate(size_t bytes)                   malloc; nullptr and errno ENOMEM where memory is exhausted. Its
//                                                  slow path, allocate_slow, may be replaced: allocate<slow>
//   void* allocate_zeroed(size_t bytes)            calloc
//   void* allocate_aligned(alignment, bytes)       alignment is a power of two
//   void  release(void* block)                     free
//   Found look_up(block)                           how much a block holds, and its span if it is one
//   bool  resize(span, bytes)                      in place
//   size_t give_back()                             everything free goes back to the system; bytes
//   HeapCounts count_heaps()                       for statistics: first of all, since what is on its way is taken in
//   start()                                        when the library has been loaded
//   hold_locks_for_fork()                          all but the arena's, in the order of os/fork.h
//   after_fork_in_child()                          the other threads are no more
//   kName                                          "solo", "shared", "offload"
//
// The fast paths, allocate and release, are inline in the flavour's header; the rest is declared here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/granule.h"

#if defined(ANNEX_SOLO)
#include "front/solo.h"
#elif defined(ANNEX_OFFLOAD)
#include "front/offload.h"
#else
#include "front/shared.h"
#endif

namespace annex::front {

// What there is to know of a live block without more work than the flavour must do.
struct Found {
  size_t usable;
  Granule* span;  // its metadata, where it is a span; else nullptr
};

struct HeapCounts {
  uint64_t heaps = 0;
  uint64_t refills = 0;
  uint64_t remote_batches = 0;
  uint64_t support_cpu_us = 0;
};

void* allocate_zeroed(size_t bytes);
void* allocate_aligned(size_t alignment, size_t bytes);
Found look_up(const void* block);
bool resize(Granule* span, size_t bytes);
size_t give_back();
HeapCounts count_heaps();
void start();
void hold_locks_for_fork();
void after_fork_in_child();

}  // namespace annex::front
