// Address space and pages: see pages.h.
#include "os/pages.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "os/auxiliary.h"
#include "os/random.h"
#include "os/small_file.h"
#include "os/system_call.h"
#include "os/text.h"
#include "policy/policy.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

namespace annex::os {

size_t page_size() { return auxiliary().page_size; }

namespace {

constinit int added_protection = 0;

long as_long(const void* address) { return reinterpret_cast<long>(address); }
bool failed(long result) { return result < 0 && result > -4096; }

long map_memory(uintptr_t hint, size_t bytes, int protection, int flags = 0) {
  return system_call(SYS_mmap, static_cast<long>(hint), static_cast<long>(bytes), protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}
// PROT_NONE is charged neither to the commit limit nor to RLIMIT_DATA.
long map_addresses(uintptr_t hint, size_t bytes) { return map_memory(hint, bytes, PROT_NONE); }

void unmap_between(uintptr_t from, uintptr_t to) {
  if (to > from) system_call(SYS_munmap, static_cast<long>(from), static_cast<long>(to - from));
}

// nullptr where there is none; *too_high says that there was some, but above kEndOfAddresses.
void* reserve_near(uintptr_t hint, size_t bytes, size_t alignment, bool* too_high) {
  const size_t padded = bytes + alignment - page_size();
  *too_high = false;
  if (padded < bytes) return nullptr;
  const long mapped = map_addresses(hint, padded);
  if (failed(mapped)) return nullptr;
  const uintptr_t start = static_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (start + alignment - 1) & ~(alignment - 1);
  *too_high = aligned + bytes > kEndOfAddresses;
  if (*too_high) {
    unmap_between(start, start + padded);
    return nullptr;
  }
  unmap_between(start, aligned);
  unmap_between(aligned + bytes, start + padded);
  return reinterpret_cast<void*>(aligned);
}

// The first stack lies at the upper end of the addresses, which is 2^47 or more on most machines, 2^39 on some of
// AArch64, and lower yet where a program runs under valgrind.
uintptr_t first_stack() {
  const uintptr_t there = auxiliary().random_bytes.load(std::memory_order_relaxed);
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return std::min(there != 0 ? there : here, kEndOfAddresses);
}

// Between which addresses random places are.
constexpr uintptr_t kLowest = uintptr_t{1} << 36;
uintptr_t highest() { return std::max(std::min(Policy::kHighestPlace, first_stack()), kLowest); }

uintptr_t random_place(size_t bytes) {
  return (kLowest + random_word() % (highest() - kLowest - bytes)) & ~(page_size() - 1);
}

// Where room() has its next piece end.
uintptr_t room_end = 0;

// What the kernel maps lies below the first stack. Sixteen TiB further down there is nothing: executables and their
// heaps (brk) are in the lower two thirds of the addresses.
uintptr_t end_of_room() {
  constexpr uintptr_t kFarBelow = uintptr_t{16} << 40;
  if (room_end == 0) {
    const uintptr_t stack = first_stack();
    room_end = stack > 2 * kFarBelow ? stack - kFarBelow : stack / 2;
  }
  return room_end;
}

}  // namespace

void* reserve_anywhere(size_t bytes, size_t alignment) {
  constexpr int kTries = 8;  // more than one only where the place is taken
  if (bytes >= highest() - kLowest) return nullptr;
  void* start = nullptr;
  bool too_high = true;
  for (int i = 0; too_high && i < kTries; ++i) {
    start = reserve_near(random_place(bytes), bytes, alignment, &too_high);
  }
  return start;
}

size_t largest_room() { return end_of_room() / 2; }

char* room(size_t bytes, size_t alignment) {
  if (kRoomIsReserved) {
    bool too_high;
    return static_cast<char*>(reserve_near(0, bytes, alignment, &too_high));
  }
  if (bytes > largest_room()) return nullptr;
  room_end = (end_of_room() - bytes) & ~(alignment - 1);
  return reinterpret_cast<char*>(room_end);
}

char* room_anywhere(size_t bytes, size_t alignment) {
  if (kRoomIsReserved) return room(bytes, alignment);
  if (bytes >= highest() - kLowest) return nullptr;
  constexpr int kTries = 8;
  uintptr_t place = 0;
  for (int i = 0; i < kTries; ++i) {
    place = random_place(bytes) & ~(alignment - 1);
    // The front of the place is reserved for a moment, to see whether it is free: if not, the kernel takes another
    // place. Under a limit on address space that may fail; then the place is taken as it is. (Not all of the place,
    // since valgrind would use 1.3 GB for its records of it.)
    const size_t front = std::min(bytes, size_t{1} << 30);
    const long mapped = map_addresses(place, front);
    if (failed(mapped)) break;
    unmap_between(static_cast<uintptr_t>(mapped), static_cast<uintptr_t>(mapped) + front);
    if (static_cast<uintptr_t>(mapped) == place) break;
  }
  return reinterpret_cast<char*>(place);
}

namespace {

// Whether the system gives huge pages that nobody has asked for: then small ones must be asked for. Read when the first
// memory is mapped, perhaps by two threads at once, which read the same. The setting for pages of 2 MiB (Linux 6.8)
// counts, unless it is "inherit": then the general one does.
bool says(const char* path, const char* word) {
  char text[64];
  return find_in(read_file(path, text), word) != nullptr;
}

bool huge_pages_come_unasked() {
  enum class Known : uint8_t { kNotYet, kNo, kYes };
  static constinit std::atomic<Known> cached = Known::kNotYet;
  Known known = cached.load(std::memory_order_relaxed);
  if (known == Known::kNotYet) {
#define ANNEX_HUGE_PAGES_AT "/sys/kernel/mm/transparent_hugepage/"
    const char* const own = ANNEX_HUGE_PAGES_AT "hugepages-2048kB/enabled";
    const bool come = says(own, "[always]") || (!says(own, "[madvise]") && !says(own, "[never]") &&
                                                says(ANNEX_HUGE_PAGES_AT "enabled", "[always]"));
#undef ANNEX_HUGE_PAGES_AT
    known = come ? Known::kYes : Known::kNo;
    cached.store(known, std::memory_order_relaxed);
  }
  return known == Known::kYes;
}

}  // namespace

void* map(size_t bytes) {
  const long mapped = map_memory(0, bytes, PROT_READ | PROT_WRITE | added_protection);
  if (failed(mapped)) return nullptr;
  void* const start = reinterpret_cast<void*>(mapped);
  advise_as_mapped(start, bytes);  // even a small mapping: the kernel joins neighbouring ones
  return start;
}

bool unmap(void* start, size_t bytes) { return system_call(SYS_munmap, as_long(start), static_cast<long>(bytes)) == 0; }

bool unmap_at(void* start, size_t bytes) { return kRoomIsReserved ? discard(start, bytes) : unmap(start, bytes); }

MapResult map_at(void* start, size_t bytes) {
  if (kRoomIsReserved) return commit(start, bytes) ? MapResult::kMapped : MapResult::kNoMemory;
  // A hint, which the kernel takes where the place is free: MAP_FIXED_NOREPLACE would want Linux 4.17.
  const long mapped = map_memory(reinterpret_cast<uintptr_t>(start), bytes, PROT_READ | PROT_WRITE | added_protection);
  if (failed(mapped)) return MapResult::kNoMemory;
  if (mapped != as_long(start)) {
    unmap(reinterpret_cast<void*>(mapped), bytes);
    return MapResult::kTaken;
  }
  advise_as_mapped(start, bytes);
  return MapResult::kMapped;
}

bool commit(void* start, size_t bytes) {
  return system_call(SYS_mprotect, as_long(start), static_cast<long>(bytes),
                     PROT_READ | PROT_WRITE | added_protection) == 0;
}

void add_protection(int protection) { added_protection = protection; }

bool forbid(void* start, size_t bytes) {
  return system_call(SYS_mprotect, as_long(start), static_cast<long>(bytes), PROT_NONE) == 0;
}

bool discard(void* start, size_t bytes) {
  return !failed(system_call(SYS_mmap, as_long(start), static_cast<long>(bytes), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

bool purge(void* start, size_t bytes) {
  const long result = system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_DONTNEED);
  if (result != -EINVAL) return result == 0;
  return system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_DONTNEED_LOCKED) == 0;
}

void advise_huge(void* start, size_t bytes, bool wanted) {
  system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void advise_as_mapped(void* start, size_t bytes) {
  if (huge_pages_come_unasked()) advise_huge(start, bytes, false);
}

bool populate(void* start, size_t bytes) {
  const long result = system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_POPULATE_WRITE);
  if (result != -EINVAL) return result == 0;
  // Linux before 5.14: the range reads as zero, so writing zeros only makes it resident.
  for (size_t at = 0; at < bytes; at += page_size()) static_cast<volatile char*>(start)[at] = 0;
  return true;
}

namespace {

// New memory in the place of whatever is mapped there.
void map_over(void* start, size_t bytes) {
  system_call(SYS_mmap, as_long(start), static_cast<long>(bytes), PROT_READ | PROT_WRITE | added_protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// Has the kernel read a word, as a futex that is waited for no longer than it takes to look: EAGAIN where the word is
// not 0, ETIMEDOUT where it is, EFAULT where it can't be read.
long probe(uintptr_t word) {
  struct timespec no_time = {0, 0};
  return system_call(SYS_futex, static_cast<long>(word), FUTEX_WAIT_PRIVATE, 0, as_long(&no_time));
}

}  // namespace

bool is_readable(const void* page) { return probe(reinterpret_cast<uintptr_t>(page)) != -EFAULT; }

bool is_written(const void* address) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~(page_size() - 1);
  const long result = probe(page);  // the program may have made it unreadable
  if (result != -ETIMEDOUT) return result == -EAGAIN;
  const uint64_t* const words = reinterpret_cast<const uint64_t*>(page);
  return std::any_of(words, words + page_size() / sizeof *words, [](uint64_t word) { return word != 0; });
}

bool begins_written(const void* address) {
  // Nobody waits, is woken or moved: the kernel only compares.
  static uint32_t nobody_waits_here = 0;
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~(page_size() - 1);
  return system_call(SYS_futex, static_cast<long>(page), FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, as_long(&nobody_waits_here),
                     0) == -EAGAIN;
}

bool move_pages(void* from, void* to, size_t bytes) {
  const long result = system_call(SYS_mremap, as_long(from), static_cast<long>(bytes), static_cast<long>(bytes),
                                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, as_long(to));
  const bool moved = !failed(result);
  if (!moved) map_over(to, bytes);  // the kernel may have unmapped it before it failed
  // QEMU's user mode leaves the source unreadable (11.1), or unmapped (7.2).
  if (moved && !commit(from, bytes)) map_over(from, bytes);
  return moved;
}

namespace {

size_t limit_on(decltype(RLIMIT_AS) resource) {
  struct rlimit limit;
  const long result = system_call(SYS_prlimit64, 0, resource, 0, reinterpret_cast<long>(&limit));
  return result == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : SIZE_MAX;
}

}  // namespace

size_t address_space_limit() { return limit_on(RLIMIT_AS); }
size_t data_limit() { return limit_on(RLIMIT_DATA); }

}  // namespace annex::os
