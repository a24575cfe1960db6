// Large blocks of the hardened build: spans (core/span.h) between granules that can't be read or written. One lies
// directly in front of the block, one behind its last granule; in between, eight bytes behind what the program asked
// for are a canary.
//
// A block that is freed goes into quarantine, guards and all. It may be handed out again, for a request of as many
// granules, when it is among the older half of those of its kind there. Where there are too many, the oldest leave: up
// to 128 KiB they keep their guards and wait for a request of their length, above they go back to the page heap.
//
//   up to 128 KiB    zeroed when it is freed, and its first KiB checked for zeros when it is handed out again; 128 are
//                    in quarantine at most, of 4 MiB together
//   above            its memory goes back to the system when it is freed, and it can't be read or written while it is
//                    in quarantine; 64 are there at most
//
// Where guards have used up the mappings that they may take (os/guards.h), a gap of as many bytes, which can be written
// to, is in a guard's place. Where writable memory is limited (RLIMIT_DATA) there is no gap either.
//
// Synchronization: any thread; a span belongs to whoever holds its block, a lock guards freed ones.
#pragma once

#include <cstddef>

#include "os/lock.h"
#include "pages/granule.h"

namespace annex::harden {

// Up to this size a span is zeroed when it is freed, above it is made unreadable.
inline constexpr size_t kZeroedSpan = 128 * 1024;

// As core/span.h's allocate_span; every block reads as zero, unless it was written to when it was free.
void* allocate_span(size_t bytes, size_t alignment);
void free_span(Span* span);
// In place; false where that can't be done.
bool resize_span(Span* span, size_t bytes);

inline size_t room_of_span(const Span* span) { return span->asked; }

// All freed spans that are kept here go back to the page heap. False where there are none.
bool let_go_of_spans();
extern constinit os::Lock waiting_spans_lock;

}  // namespace annex::harden
