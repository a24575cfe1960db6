// What calloc's clearing costs a program, and what it would cost where another core clears ahead: the numbers behind
// docs/offload.md, in microseconds for each 4 KiB of a block that is cleared and then written once.
//   cc -O2 -pthread tools/clear_costs.c -o build/clear_costs && build/clear_costs
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { kPage = 4096, kRounds = 401 };

static char* block;
static size_t bytes;
static int wanted, done;  // how often the other core was asked to clear, and has

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void* support_core(void* unused) {
  bind_to(1);
  for (int seen = 0;;) {
    while (__atomic_load_n(&wanted, __ATOMIC_ACQUIRE) == seen) {
    }
    memset(block, 0, bytes);
    __atomic_store_n(&done, ++seen, __ATOMIC_RELEASE);
  }
  return unused;
}

static void use(void) {
  for (size_t i = 0; i < bytes; i += 8) *(volatile size_t*)(block + i) += i;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, kRounds, sizeof *values, by_value);
  return values[kRounds / 2];
}

int main(void) {
  pthread_t thread;
  bind_to(0);
  if (pthread_create(&thread, NULL, support_core, NULL) != 0) return 1;
  static double clear[kRounds], after_own[kRounds], after_other[kRounds];
  printf("%10s %10s %18s %24s %8s\n", "KiB", "clear", "use, cleared here", "use, cleared elsewhere", "saved");
  for (bytes = 64 << 10; bytes <= 16 << 20; bytes *= 4) {
    block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED) return 1;
    const double pages = (double)bytes / kPage;
    for (int i = 0; i < kRounds; ++i) {
      double t = now();
      memset(block, 0, bytes);
      clear[i] = (now() - t) / pages;
      t = now();
      use();
      after_own[i] = (now() - t) / pages;
      const int turn = wanted + 1;
      __atomic_store_n(&wanted, turn, __ATOMIC_RELEASE);
      while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != turn) {
      }
      t = now();
      use();
      after_other[i] = (now() - t) / pages;
    }
    const double own = median(after_own), other = median(after_other), cleared = median(clear);
    printf("%10zu %10.3f %18.3f %24.3f %7.0f%%\n", bytes >> 10, cleared, own, other,
           100 * (1 - other / (own + cleared)));
    munmap(block, bytes);
  }
  return 0;
}
