// What pages cost on this machine, in microseconds for each 4 KiB: the numbers behind docs/commitment.md.
//   cc -O2 tools/page_costs.c -o build/page_costs && build/page_costs
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { kPage = 4096, kHuge = 2 << 20, kBytes = 128 << 20, kPages = kBytes / kPage };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void report(const char* what, double since) { printf("%-44s %7.3f\n", what, (now() - since) / kPages); }

static char* map(void) {
  char* start = mmap(NULL, kBytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  return (char*)(((uintptr_t)start + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
}

static void touch(char* start) {
  for (size_t i = 0; i < kBytes; i += kPage) start[i] = 1;
}

int main(void) {
  char* small = map();
  char* huge = map();
  char* target = map();
  if (!small || !huge || !target) return 1;
  madvise(small, kBytes, MADV_NOHUGEPAGE);
  madvise(huge, kBytes, MADV_HUGEPAGE);
  // The host may have to find memory first: the second round counts.
  for (int round = 1; round <= 2; ++round) {
    printf("round %d, microseconds for each 4 KiB\n", round);
    double t = now();
    touch(small);
    report("touch, small pages", t);
    t = now();
    memset(small, 0, kBytes);
    report("clear what is resident", t);
    t = now();
    madvise(small, kBytes, MADV_DONTNEED);
    report("give back, small pages", t);
    t = now();
    for (size_t i = 0; i < kBytes; i += 65536) madvise(small + i, 65536, MADV_POPULATE_WRITE);
    report("populate, 64 KiB at a time", t);
    t = now();
    if (mremap(small, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target) == MAP_FAILED) return 1;
    report("move to another address", t);
    t = now();
    touch(huge);
    report("touch, huge pages", t);
    t = now();
    madvise(huge, kBytes, MADV_DONTNEED);
    report("give back, huge pages", t);
    madvise(target, kBytes, MADV_DONTNEED);
  }
  return 0;
}
