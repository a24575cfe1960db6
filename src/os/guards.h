// Guards: pages that can't be read or written, next to memory that a program may write beyond.
//
// Installed guards are entries of the page tables alone (MADV_GUARD_INSTALL, Linux 6.13): no mapping is split for them.
// docs/hardened.md says how they behave with fork, locked memory and huge pages.
//
// Mapped guards are pages made unreadable by mprotect (forbid()), where none can be installed: the kernel is older, a
// filter of system calls refuses, the memory is locked, or the guard is too large. Each splits a mapping in three. All
// of them take at most half of the mappings that a process may have (vm.max_map_count): without any left no thread can
// be started.
//
// Synchronization: as os/pages.h; the counts are atomic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

enum class GuardKind : uint8_t { kNone, kInstalled, kMapped };

// Reads how many mappings a process may have. At the library's start: before there is a guard, and before the program
// may have installed a filter of system calls that forbids opening a file.
void set_guard_budget();

// Makes a committed range a guard, or at least gives its memory back (unless it is `clean`, and so holds none). kNone
// where the system refuses or the mappings for guards are used up: then the range can be read and written as before.
GuardKind add_guard(void* start, size_t bytes, bool clean);

// To use the range again: this, then commit(). If it was a guard, it reads as zero. False where the system refuses:
// then the range can't be used any more.
bool remove_guard(GuardKind kind, void* start, size_t bytes);

}  // namespace annex::os
