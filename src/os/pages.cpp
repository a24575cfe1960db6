// Address space and pages: see pages.h.
#include "os/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/random.h"
#include "os/system_call.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace annex::os {

size_t page_size() {
  static constinit size_t known = 0;
  size_t size = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (size == 0) {
    size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    __atomic_store_n(&known, size, __ATOMIC_RELAXED);
  }
  return size;
}

namespace {

constexpr uintptr_t kEnd = uintptr_t{1} << 47;  // x86-64 gives nothing above unasked, AArch64 does

constinit int added_protection = 0;

// PROT_NONE is charged neither to the commit limit nor to RLIMIT_DATA.
long map_addresses(uintptr_t hint, size_t bytes) {
  return system_call(SYS_mmap, static_cast<long>(hint), static_cast<long>(bytes), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void unmap(uintptr_t from, uintptr_t to) {
  if (to > from) system_call(SYS_munmap, static_cast<long>(from), static_cast<long>(to - from));
}

long as_long(const void* address) { return reinterpret_cast<long>(address); }
bool failed(long result) { return result < 0 && result > -4096; }

}  // namespace

namespace {

// *too_high: there was room, above kEnd.
void* reserve_near(uintptr_t hint, size_t bytes, size_t alignment, bool* too_high) {
  const size_t padded = bytes + alignment - page_size();
  *too_high = false;
  if (padded < bytes) return nullptr;
  const long mapped = map_addresses(hint, padded);
  if (failed(mapped)) return nullptr;
  const uintptr_t start = static_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (start + alignment - 1) & ~(alignment - 1);
  *too_high = aligned + bytes > kEnd;
  if (*too_high) {
    unmap(start, start + padded);
    return nullptr;
  }
  unmap(start, aligned);
  unmap(aligned + bytes, start + padded);
  return reinterpret_cast<void*>(aligned);
}

// At an aligned place below the library: one system call, not three. What is loaded next has room in between. nullptr
// where the place is taken, and where the library is part of an executable: that lies elsewhere than in the highest
// eighth of the addresses, in which the kernel maps what asks for no place.
void* reserve_below_library(size_t bytes, size_t alignment) {
  constexpr uintptr_t kRoom = uintptr_t{64} << 20;
  const uintptr_t library = reinterpret_cast<uintptr_t>(&added_protection);
  if (library > kEnd || library < kEnd - kEnd / 8 || library - kRoom - alignment < bytes) return nullptr;
  const uintptr_t wanted = (library - kRoom - bytes) & ~(alignment - 1);
  const long mapped = map_addresses(wanted, bytes);
  if (failed(mapped)) return nullptr;
  const uintptr_t start = static_cast<uintptr_t>(mapped);
  if (start == wanted) return reinterpret_cast<void*>(start);
  unmap(start, start + bytes);
  return nullptr;
}

}  // namespace

void* reserve(size_t bytes, size_t alignment) {
  if (alignment > page_size()) {
    if (void* start = reserve_below_library(bytes, alignment)) return start;
  }
  bool too_high = false;
  void* const start = reserve_near(0, bytes, alignment, &too_high);
  return too_high ? reserve_anywhere(bytes, alignment) : start;
}

void* reserve_anywhere(size_t bytes, size_t alignment) {
  constexpr uintptr_t kLowest = uintptr_t{1} << 36;
  constexpr uintptr_t kHighest = uintptr_t{127} << 40;
  constexpr int kTries = 8;  // one is enough but where the place is taken
  if (bytes >= kHighest - kLowest) return nullptr;
  void* start = nullptr;
  bool too_high = true;
  for (int i = 0; too_high && i < kTries; ++i) {
    const uintptr_t hint = kLowest + random_word() % (kHighest - kLowest - bytes);
    start = reserve_near(hint & ~(page_size() - 1), bytes, alignment, &too_high);
  }
  return start;
}

bool commit(void* start, size_t bytes) {
  return system_call(SYS_mprotect, as_long(start), static_cast<long>(bytes),
                     PROT_READ | PROT_WRITE | added_protection) == 0;
}

void commit_also_with(int protection) { added_protection = protection; }

bool forbid(void* start, size_t bytes) {
  return system_call(SYS_mprotect, as_long(start), static_cast<long>(bytes), PROT_NONE) == 0;
}

bool discard(void* start, size_t bytes) {
  return !failed(system_call(SYS_mmap, as_long(start), static_cast<long>(bytes), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

bool allow_reading(void* start, size_t bytes) {
  return system_call(SYS_mprotect, as_long(start), static_cast<long>(bytes), PROT_READ) == 0;
}

bool purge(void* start, size_t bytes) {
  return system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_DONTNEED) == 0;
}

void advise_huge(void* start, size_t bytes, bool wanted) {
  system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

bool populate(void* start, size_t bytes) {
  const long result = system_call(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_POPULATE_WRITE);
  if (result != -EINVAL) return result == 0;
  // Linux before 5.14: the range is clean, so writing zeros changes nothing but that it is there.
  for (size_t at = 0; at < bytes; at += page_size()) static_cast<volatile char*>(start)[at] = 0;
  return true;
}

namespace {

// What the kernel says of a page, bit 0 being whether it is in memory. False where nothing is mapped.
bool look_at(const void* page, unsigned char* state) {
  return system_call(SYS_mincore, as_long(page), static_cast<long>(page_size()), as_long(state)) == 0;
}

// Whatever was there is gone.
void map_anew(void* start, size_t bytes) {
  system_call(SYS_mmap, as_long(start), static_cast<long>(bytes), PROT_READ | PROT_WRITE | added_protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace

bool is_resident(const void* address) {
  unsigned char state = 0;
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~(page_size() - 1);
  return look_at(reinterpret_cast<const void*>(page), &state) && (state & 1) != 0;
}

bool move_pages(void* from, void* to, size_t bytes) {
  const long result = system_call(SYS_mremap, as_long(from), static_cast<long>(bytes), static_cast<long>(bytes),
                                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, as_long(to));
  const bool moved = !failed(result);
  unsigned char state;
  if (!moved) {
    map_anew(to, bytes);  // the kernel may have taken it away before it failed
  } else if (!look_at(from, &state)) {
    map_anew(from, bytes);  // QEMU's user mode (7.2) takes it for unmapped from then on
  }
  return moved;
}

namespace {

size_t limit_on(decltype(RLIMIT_AS) resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : SIZE_MAX;
}

}  // namespace

size_t address_space_limit() { return limit_on(RLIMIT_AS); }
size_t data_limit() { return limit_on(RLIMIT_DATA); }

}  // namespace annex::os
