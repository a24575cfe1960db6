// Address space and pages, straight from the kernel. All sizes are bytes and, like addresses, multiples of page_size().
//
// Synchronization: each call is a system call or two; callers make sure that nobody else uses the range. None touches
// errno.
#pragma once

#include <cstddef>

namespace annex::os {

// 4 KiB on most machines, up to 64 KiB on some; never assumed.
size_t page_size();

// Address space without memory behind it, below 2^47: messages between heaps hold no more of an address
// (remote/message.h). nullptr where there is none left. `alignment` is a power of two.
void* reserve(size_t bytes, size_t alignment);

// The same at a random place, where the kernel has room there.
void* reserve_anywhere(size_t bytes, size_t alignment);

// Makes a reserved range readable and writable (reading as zero); false when the system refuses.
bool commit(void* start, size_t bytes);
// A protection that is added to these from here on; before there is a second thread (os/memory_tags.h).
void commit_also_with(int protection);

// Makes a committed range unreadable and unwritable; commit() undoes it. False when the system refuses.
bool forbid(void* start, size_t bytes);
// The same, and gives its memory back: once committed again it reads as zero. Its advice on huge pages is forgotten.
bool discard(void* start, size_t bytes);
// Makes a reserved range readable: as zero, and without memory. False when the system refuses.
bool allow_reading(void* start, size_t bytes);

// Gives the range's memory back. It stays committed and reads as zero. False where the system can't (locked pages).
bool purge(void* start, size_t bytes);

// Asks for transparent huge pages, or for none.
void advise_huge(void* start, size_t bytes, bool wanted);

// Makes a committed range that has never been touched resident; false where there is no memory for it.
bool populate(void* start, size_t bytes);

// Whether the page of an address is in memory.
bool is_resident(const void* address);

// Moves the pages of one committed range to another, both of the same size and disjoint; the target holds nothing that
// is of use, and the source reads as zero afterwards. False where the kernel can't: then the target reads as zero.
bool move_pages(void* from, void* to, size_t bytes);

// The limits on address space (RLIMIT_AS) and on what is writable (RLIMIT_DATA); SIZE_MAX where there is none.
size_t address_space_limit();
size_t data_limit();

}  // namespace annex::os
