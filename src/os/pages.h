// Address space and pages, straight from the kernel. All sizes are bytes and, like addresses, multiples of page_size().
//
// Synchronization: each call is a system call or two; callers make sure that nobody else uses the range. None touches
// errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

// Blocks lie below this: messages between heaps have no room for larger addresses (remote/message.h). x86-64 maps
// nothing above it unless asked to; AArch64 does.
inline constexpr uintptr_t kEndOfAddresses = uintptr_t{1} << 47;

// 4 KiB on most machines, up to 64 KiB on some; never assumed.
size_t page_size();

// Address space without memory behind it, at a random place below kEndOfAddresses. nullptr where there is none left.
// `alignment` is a power of two.
void* reserve_anywhere(size_t bytes, size_t alignment);

// Makes a reserved range readable and writable (reading as zero); false when the system refuses.
bool commit(void* start, size_t bytes);
// A protection (PROT_...) that memory gets besides these from now on, when it is committed or mapped
// (os/memory_tags.h). To be called before there is a second thread.
void add_protection(int protection);

// Readable, writable, zero, of small pages, wherever the kernel has room; nullptr when it refuses.
void* map(size_t bytes);
bool unmap(void* start, size_t bytes);

// Room to grow in: addresses below kEndOfAddresses at which nothing is mapped, far from where the kernel maps memory
// for which no address is given. They are not reserved: a reservation counts as memory does in RLIMIT_AS, in what
// mlockall() must lock, and in core files; and under a limit below it, all that a process maps later fails. So the
// caller maps what it needs by map_at(), a piece at a time, and another part of the process may map there first.
// nullptr where there is no such room. room() goes downwards, each below the one before; room_anywhere() takes a random
// place. To be called by one thread at a time.
char* room(size_t bytes, size_t alignment);
size_t largest_room();  // bytes that room() still has in one piece
char* room_anywhere(size_t bytes, size_t alignment);

// ThreadSanitizer allows memory in a few ranges of addresses only, which the kernel finds: there, room is reserved
// after all, and there is less of it.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kRoomIsReserved = true;
#else
inline constexpr bool kRoomIsReserved = false;
#endif

enum class MapResult : uint8_t {
  kMapped,
  kTaken,     // something is mapped there: another place may do
  kNoMemory,  // or a limit is reached (RLIMIT_AS, RLIMIT_DATA, overcommit, mappings): another place won't help
};
// Memory in such room: readable, writable, zero. It has small pages, until advise_huge() asks for huge ones.
MapResult map_at(void* start, size_t bytes);
// Makes it room again. False when the system refuses: there are too many mappings.
bool unmap_at(void* start, size_t bytes);

// Makes a committed range unreadable and unwritable; commit() undoes it. False when the system refuses.
bool forbid(void* start, size_t bytes);
// The same, and gives its memory back: once committed again it reads as zero. Advice on huge pages is lost.
bool discard(void* start, size_t bytes);

// Gives the range's memory back. It stays committed and reads as zero. False where the system can't (pages locked in
// memory, before Linux 5.18).
bool purge(void* start, size_t bytes);

// Asks for transparent huge pages, or for none.
void advise_huge(void* start, size_t bytes, bool wanted);
// Gives the range the advice on huge pages that map_at() gives.
void advise_as_mapped(void* start, size_t bytes);

// Makes a committed range that has never been touched resident; false where there is no memory for it.
bool populate(void* start, size_t bytes);

// Whether a page of memory can be read. The kernel tries it, so that there is no fault where it can't.
bool is_readable(const void* page);

// Whether the page of an address, in memory that nobody uses any more, holds anything but zeros; false where it can't
// be read. (mincore() would say whether the page is resident. But sandboxes that allow only the system calls of
// programs on glibc's malloc end the process for it.)
bool is_written(const void* address);
// The same of memory that may be in use, by the first four bytes of the page alone: nothing but the kernel reads them.
bool begins_written(const void* address);

// Moves the pages of one committed range to another of the same size, which it does not overlap. What the target held
// is lost, and the source reads as zero afterwards. False where the kernel can't: then the target reads as zero.
bool move_pages(void* from, void* to, size_t bytes);

// The limits on address space (RLIMIT_AS) and on what is writable (RLIMIT_DATA); SIZE_MAX where there is none.
size_t address_space_limit();
size_t data_limit();

}  // namespace annex::os
