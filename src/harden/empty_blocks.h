// Blocks of no bytes (malloc(0)): each has an address of its own, where nothing can be read or written.
//
// Synchronization: any thread.
#pragma once

namespace annex::harden {

// nullptr where there is none left.
void* allocate_empty();
// Whether an address is one of theirs, in use or not.
bool is_empty_block(const void* address);
// Both end the process where the block is not in use.
void check_empty(const void* block);
void free_empty(void* block);

}  // namespace annex::harden
