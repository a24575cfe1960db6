// Address space and pages: see pages.h.
#include "os/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/system_call.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
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

void* reserve(size_t bytes, size_t alignment) {
  const size_t padded = bytes + alignment - page_size();
  if (padded < bytes) return nullptr;
  // PROT_NONE is charged neither to the commit limit nor to RLIMIT_DATA.
  void* mapped = mmap(nullptr, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t start = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (start + alignment - 1) & ~(alignment - 1);
  if (aligned > start) munmap(mapped, aligned - start);
  const uintptr_t end = start + padded;
  if (end > aligned + bytes) munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  return reinterpret_cast<void*>(aligned);
}

bool commit(void* start, size_t bytes) { return mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0; }

bool purge(void* start, size_t bytes) {
  // Also called on the helper thread, which has no errno.
  return system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), MADV_DONTNEED) == 0;
}

void advise_huge(void* start, size_t bytes, bool wanted) {
  const int saved = errno;
  madvise(start, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  errno = saved;
}

bool move_pages(void* from, void* to, size_t bytes) {
  const int saved = errno;
  const bool moved = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != MAP_FAILED;
  errno = saved;
  return moved;
}

size_t address_space_limit() {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : SIZE_MAX;
}

}  // namespace annex::os
