// Sampled blocks: with ANNEX_SAMPLE, now and then a small block lies on a page of its own between pages that can't be
// read or written, and can't be itself once it is freed. What a program does wrong with such a block is found when it
// does it, with all the others at full speed.
//
// From: GWP-ASan (Serebryany, Kennelly, Phillips et al., "GWP-ASan: Sampling-Based Detection of Memory-Safety Bugs in
// Production", 2024). There one allocation of so many is sampled; here at most so many a second are, which bounds the
// cost whatever the program does: a call that finds no block ready looks at the clock.
//
//   behind the block, or before it   most blocks end where their page does, the others begin where it does; what lies
//                                    between the block and the end of its page is looked at when it is freed
//   after it was freed               as long as its page is not another block's: the one that has waited longest is
//   freed twice, or by an address    the process ends with one line, as for other blocks
//   within it
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

// Whether it is time to sample a block of so many bytes.
inline bool is_due(size_t bytes) {
  return place.bytes != 0 && bytes - 1 < kMostBytes && os::now_ms() >= next_ms.load(std::memory_order_relaxed);
}

// nullptr where another thread was faster, all pages are in use, or memory is exhausted. The block reads as zero.
void* allocate(size_t bytes, size_t alignment);

// What follows is for addresses that contains() says yes to. The process ends where it is no block in use.
void release(const void* block);
// What the program asked for.
size_t bytes_of(const void* block);

}  // namespace annex::sample
