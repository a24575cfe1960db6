// aligned_alloc as the C library of the process has it: what it says to alignments that are powers of two and to
// others.
//
//   aligned libc      as libc's own function, taken from it by name
//   aligned rounds    as glibc before 2.38: the next power of two
//   aligned refuses   as glibc since 2.38: NULL and EINVAL
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* AlignedAlloc(size_t, size_t);
typedef void Free(void*);

static void fail(const char* what, size_t alignment, size_t bytes) {
  fprintf(stderr, "aligned_alloc(%zu, %zu): %s\n", alignment, bytes, what);
  exit(1);
}

static size_t next_power(size_t n) {
  size_t power = 1;
  while (power < n) power *= 2;
  return power;
}

// The errno, 0 for a block. Of the block's alignment, what the alignment rounded up asks for.
static int answer(AlignedAlloc* allocate, Free* release, size_t alignment, size_t bytes) {
  errno = 0;
  char* const block = allocate(alignment, bytes);
  if (block == NULL) return errno;
  if ((uintptr_t)block % next_power(alignment) != 0) fail("not aligned", alignment, bytes);
  memset(block, 1, bytes);
  release(block);
  return 0;
}

int main(int argc, char** argv) {
  static const size_t alignments[] = {0,  1,   2,    3,    8,    16,    24,           48,
                                      64, 100, 4095, 4096, 4097, 70000, SIZE_MAX / 2, SIZE_MAX};
  static const size_t sizes[] = {0, 1, 10, 100, 4096, 5000, 100000};
  if (argc < 2) return 2;
  const int by_libc = strcmp(argv[1], "libc") == 0, rounds = strcmp(argv[1], "rounds") == 0;
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  AlignedAlloc* const own = libc == NULL ? NULL : (AlignedAlloc*)dlsym(libc, "aligned_alloc");
  Free* const own_free = libc == NULL ? NULL : (Free*)dlsym(libc, "free");
  if (own == NULL || own_free == NULL) return 3;
  if (own == aligned_alloc && by_libc) return 4;  // there is nothing to compare
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; ++i) {
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; ++j) {
      const size_t alignment = alignments[i], bytes = sizes[j];
      const int power = alignment != 0 && (alignment & (alignment - 1)) == 0;
      int expected = power || (rounds && alignment <= SIZE_MAX / 2 + 1) ? 0 : EINVAL;
      if (!power && rounds && alignment == SIZE_MAX / 2) expected = ENOMEM;  // there are so many addresses nowhere
      if (by_libc) expected = answer(own, own_free, alignment, bytes);
      const int got = answer(aligned_alloc, free, alignment, bytes);
      if (got != expected) {
        fprintf(stderr, "%d, not %d\n", got, expected);
        fail("another answer", alignment, bytes);
      }
    }
  }
  return 0;
}
