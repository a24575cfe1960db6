// What a thread of the library's costs a program, and what none costs: the numbers behind docs/commitment.md. How long
// reading a character takes after 230 MiB have been taken and freed three times, and how much is resident when nothing
// has been allocated for 3 s.
//   cc -O2 tools/idle_costs.c -o build/idle_costs
//   ANNEX_BACKGROUND=1 LD_PRELOAD=build/release/libannex.so build/idle_costs
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBlocks = 8000, kBlockBytes = 30000, kRounds = 3, kFileBytes = 1 << 20, kReads = 50 };

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void allocate(void) {
  static void* blocks[kBlocks];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBlockBytes), 1, kBlockBytes);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
}

static double read_characters(void) {
  FILE* file = tmpfile();
  if (file == NULL) exit(1);
  for (int i = 0; i < kFileBytes; ++i) putc(i, file);
  const double start = now_ms();
  for (int i = 0; i < kReads; ++i) {
    rewind(file);
    while (getc(file) != EOF) {
    }
  }
  return (now_ms() - start) * 1e6 / kReads / kFileBytes;
}

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * 4;
}

int main(void) {
  allocate();
  const double ns = read_characters();
  const struct timespec idle = {3, 0};
  nanosleep(&idle, NULL);
  printf("getc %.1f ns; resident %.0f MiB\n", ns, (double)resident_kib() / 1024);
}
