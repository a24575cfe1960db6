// What threads keep that have freed everything and sleep, after another one has called malloc_trim: a number behind
// docs/commitment.md, "Holes". 100 threads free 4,000 blocks of 1,000 bytes each.
//   cc -O2 -pthread tools/idle_threads.c -o build/idle_threads
//   LD_PRELOAD=build/release/libannex.so build/idle_threads
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kThreads = 100, kBlocks = 4000, kBlockBytes = 1000, kStackBytes = 1 << 16 };

static pthread_barrier_t barrier;

static long resident_mib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static void* free_and_sleep(void* unused) {
  void** const blocks = malloc(kBlocks * sizeof(void*));
  for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBlockBytes), 1, kBlockBytes);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  free(blocks);
  pthread_barrier_wait(&barrier);
  pause();
  return unused;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, free_and_sleep, NULL) != 0) return 1;
  }
  pthread_barrier_wait(&barrier);
  const long used = resident_mib();
  pthread_barrier_wait(&barrier);
  malloc_trim(0);
  printf("resident in use %ld MiB, all freed and trimmed %ld MiB\n", used, resident_mib());
  fflush(stdout);
  _exit(0);
}
