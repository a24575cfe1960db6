// Blocks of no bytes: each has an address of its own, where nothing can be read or written.
//
// Synchronization: any thread.
#pragma once

namespace annex::harden {

// nullptr where there is none left.
void* allocate_empty();
// Whether an address is one of theirs, in use or not.
bool is_empty_block(const void* address);
// Ends the process where it is not in use.
void check_empty(const void* block);
void free_empty(void* block);

}  // namespace annex::harden
