// Guards: pages that can't be read or written, next to what a program may run over.
//
// Marked guards are in the page tables alone (MADV_GUARD_INSTALL, Linux 6.13): no mapping is split for them.
// docs/hardened.md has what they are like beside fork, locked memory and huge pages.
//
// Mapped guards are pages made unreadable (forbid()), where they can't be marked: the kernel is older, a filter of
// system calls refuses, they are locked in memory, or there are too many. Each splits a mapping in three, so all of
// them take no more than half of those that a process may have (vm.max_map_count): without any left no thread starts.
//
// Synchronization: as os/pages.h; the counts are anybody's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

enum class GuardKind : uint8_t { kNone, kMarked, kMapped };

// Reads how many mappings a process may have; before there is a guard. At the start, since a filter of system calls may
// come later that opening a file is too much for.
void set_guard_budget();

// Makes a committed range a guard, or at least gives its memory back; `clean` says that it holds none. kNone where the
// system refuses, or the mappings for it are used up: then it can be read and written as before.
GuardKind add_guard(void* start, size_t bytes, bool clean);

// Once the range is committed again, after this, it can be used, and reads as zero if it was a guard. False where the
// system refuses: then it can't.
bool remove_guard(GuardKind kind, void* start, size_t bytes);

}  // namespace annex::os
