// The malloc family by its C names. Taken together with glibc.cpp this is every allocation function that glibc exports,
// so that no program gets a block from one allocator and gives it to another.
#include <cerrno>
#include <cstddef>

#include "entry/family.h"
#include "entry/lifetime.h"
#include "entry/visibility.h"
#include "os/libc_version.h"
#include "os/pages.h"

using namespace annex;

extern "C" {

ANNEX_EXPORT void* malloc(size_t bytes) noexcept { return Front::allocate(bytes); }
ANNEX_EXPORT void free(void* block) noexcept { Front::release(block); }
ANNEX_EXPORT void* calloc(size_t count, size_t bytes) noexcept { return entry::allocate_array(count, bytes); }
ANNEX_EXPORT void* realloc(void* block, size_t bytes) noexcept { return entry::reallocate_or_free(block, bytes); }

// Calls the process's realloc, as glibc's does: where valgrind, heaptrack or another allocator interposes realloc but
// not reallocarray, the block is that one's. (Declared by its name in the assembler, so that the compiler does not call
// the function above.)
void* realloc_of_the_process(void* block, size_t bytes) noexcept __asm__("realloc");

ANNEX_EXPORT void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return front::out_of_memory();
  return realloc_of_the_process(block, total);
}

// As the process's C library: before 2.38 glibc's was memalign. (musl's takes 0 for an alignment, too.)
ANNEX_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  if (!entry::is_power_of_two(alignment)) [[unlikely]] {
#ifdef __GLIBC__
    if (os::glibc_minor() < 38) return entry::allocate_rounded(alignment, bytes);
#else
    if (alignment == 0) return Front::allocate(bytes);
#endif
  }
  return entry::allocate_aligned_checked(alignment, bytes);
}

ANNEX_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept {
  return entry::allocate_rounded(alignment, bytes);
}

// The error is returned, and *result stays as it was; where memory is exhausted errno says so too, as in glibc: POSIX
// leaves it open, and there are programs that look.
ANNEX_EXPORT int posix_memalign(void** result, size_t alignment, size_t bytes) noexcept {
  if (!entry::is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* block = entry::allocate_aligned(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

ANNEX_EXPORT void* valloc(size_t bytes) noexcept { return entry::allocate_aligned(os::page_size(), bytes); }

// Whole pages, at least one.
ANNEX_EXPORT void* pvalloc(size_t bytes) noexcept {
  const size_t page = os::page_size();
  if (bytes > front::kMaxRequest) return front::out_of_memory();
  return entry::allocate_aligned(page, bytes == 0 ? page : (bytes + page - 1) & ~(page - 1));
}

ANNEX_EXPORT size_t malloc_usable_size(void* block) noexcept {
  return block == nullptr ? 0 : Front::look_up(block).usable;
}

ANNEX_EXPORT void cfree(void* block) noexcept { Front::release(block); }
ANNEX_EXPORT void free_sized(void* block, size_t bytes) noexcept { Front::release(block, bytes, 0); }
ANNEX_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t bytes) noexcept {
  Front::release(block, bytes, alignment);
}

// A name that no other library interposes: solo.cpp compares calloc with it.
[[gnu::visibility("hidden")]] void* annex_own_calloc(size_t, size_t) noexcept __attribute__((alias("calloc")));

// The names by which glibc's own parts, and programs that know it well, ask for these functions.
ANNEX_EXPORT void* __libc_malloc(size_t) noexcept __attribute__((alias("malloc")));
ANNEX_EXPORT void __libc_free(void*) noexcept __attribute__((alias("free")));
ANNEX_EXPORT void __libc_cfree(void*) noexcept __attribute__((alias("free")));
ANNEX_EXPORT void* __libc_calloc(size_t, size_t) noexcept __attribute__((alias("calloc")));
ANNEX_EXPORT void* __libc_realloc(void*, size_t) noexcept __attribute__((alias("realloc")));
ANNEX_EXPORT void* __libc_reallocarray(void*, size_t, size_t) noexcept __attribute__((alias("reallocarray")));
ANNEX_EXPORT void* __libc_memalign(size_t, size_t) noexcept __attribute__((alias("memalign")));
ANNEX_EXPORT void* __libc_valloc(size_t) noexcept __attribute__((alias("valloc")));
ANNEX_EXPORT void* __libc_pvalloc(size_t) noexcept __attribute__((alias("pvalloc")));
ANNEX_EXPORT int __posix_memalign(void**, size_t, size_t) noexcept __attribute__((alias("posix_memalign")));

}  // extern "C"
