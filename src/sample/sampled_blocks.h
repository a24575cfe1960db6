// Sampled blocks: with ANNEX_SAMPLE, now and then a small block lies on a page of its own between two guard pages, and
// that page becomes one too when the block is freed. A wrong access to such a block is found at once, while all other
// blocks are as fast as ever.
//
// From: GWP-ASan (Serebryany, Kennelly, Phillips et al., "GWP-ASan: Sampling-Based Detection of Memory-Safety Bugs in
// Production", 2024). There one of a number of allocations is sampled; here at most a number a second, which bounds the
// cost whatever the program does: a call of malloc that finds no block in the free list reads the clock.
//
//   access behind or before it       three of four blocks end where their page does, the others begin where it does;
//                                    the rest of the page, behind the block, is checked when the block is freed
//   access after it was freed        found until its page is another block's. Pages are used again in the order in
//                                    which their blocks were freed
//   freed twice, or by an address    the process ends with one line, as for other blocks
//   inside of it
//
// The line says which; with ANNEX_BACKTRACE=1 the call stacks follow: where it happened, where the block was allocated,
// and where it was freed.
//
// Synchronization: any thread; a lock guards which pages are taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/clock.h"
#include "os/lock.h"
#include "sample/place.h"

namespace annex::sample {

inline constexpr size_t kMostBytes = 4096;  // larger blocks are not sampled

extern constinit std::atomic<uint64_t> next_ms [[gnu::visibility("hidden")]];  // when the next one may be taken
extern constinit os::Lock lock;  // of all that is below; held around fork (os/fork.h)

// At the library's start, where the environment asks for samples (os/options.h).
void start();

// Whether a sample is due, and a block of so many bytes may be it.
inline bool is_due(size_t bytes) {
  return place.bytes != 0 && bytes - 1 < kMostBytes && os::now_ms() >= next_ms.load(std::memory_order_relaxed);
}

// nullptr where another thread was faster, all pages are in use, or memory is exhausted. The block reads as zero.
void* allocate(size_t bytes, size_t alignment);

// The functions below are for addresses for which contains() is true. They end the process where it is no block in use.
void release(const void* block);
// What the program asked for.
size_t bytes_of(const void* block);

}  // namespace annex::sample
