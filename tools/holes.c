// What is given back of a heap full of holes, by malloc_trim or what an allocator has in its place, and what that
// costs: the numbers behind docs/commitment.md, "Holes". 300,000 blocks of 0.5 to 2 KiB, of which one in twenty,
// anywhere, stays in use.
//   cc -O2 tools/holes.c -o build/holes
//   LD_PRELOAD=build/release/libannex.so build/holes
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kBlocks = 300000, kKept = 20, kLeast = 512, kMost = 2048 };

static char* blocks[kBlocks];
static size_t sizes[kBlocks];

static uint64_t random_word(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double resident_mib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void give_back(void) {
  void (*const collect)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "mi_collect");
  void (*const release)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
  int (*const control)(const char*, void*, size_t*, void*, size_t) =
      (int (*)(const char*, void*, size_t*, void*, size_t))dlsym(RTLD_DEFAULT, "mallctl");
  if (collect != NULL) {
    collect(true);
  } else if (release != NULL) {
    release();
  } else if (control != NULL) {
    control("arena.4096.purge", NULL, NULL, NULL, 0);  // of all arenas: MALLCTL_ARENAS_ALL
  } else {
    malloc_trim(0);
  }
}

static void fill(void) {
  for (int i = 0; i < kBlocks; ++i) {
    if (blocks[i] == NULL) blocks[i] = memset(malloc(sizes[i]), i, sizes[i]);
  }
}

int main(void) {
  for (int i = 0; i < kBlocks; ++i) sizes[i] = kLeast + random_word() % (kMost - kLeast);
  fill();
  for (int i = kBlocks - 1; i > 0; --i) {  // another order
    const int j = (int)(random_word() % (uint64_t)(i + 1));
    char* const block = blocks[i];
    blocks[i] = blocks[j];
    blocks[j] = block;
    const size_t size = sizes[i];
    sizes[i] = sizes[j];
    sizes[j] = size;
  }
  size_t live = 0;
  for (int i = 0; i < kBlocks; ++i) {
    if (i % kKept == 0) {
      live += sizes[i];
    } else {
      free(blocks[i]);
      blocks[i] = NULL;
    }
  }
  const double freed = resident_mib();
  double start = now_ms();
  give_back();
  const double trim_ms = now_ms() - start;
  const double trimmed = resident_mib();
  start = now_ms();
  fill();
  printf("live %.1f MiB, resident %.0f, then %.0f; given back in %.0f ms, filled again in %.0f ms\n",
         (double)live / (1 << 20), freed, trimmed, trim_ms, now_ms() - start);
}
