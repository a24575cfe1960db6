// Threads that start and end, allocate small and large blocks, in fresh memory and in what was freed, free each
// other's, and fork. Exit status 0.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kRounds = 4, kBlocks = 400 };

static void* passed[kThreads][kBlocks];

static void* work(void* number) {
  const size_t mine = (size_t)number;
  for (size_t i = 0; i < kBlocks; ++i) {
    free(passed[mine][i]);  // another's
    const size_t bytes = i % 50 == 0 ? 300000 + i * 1000 : 16 + (i * 131 + mine * 17) % 5000;
    passed[mine][i] = malloc(bytes);
    if (passed[mine][i] == NULL) abort();
    memset(passed[mine][i], 1, bytes);
  }
  void* const large = malloc(1500000);
  if (large == NULL) abort();
  memset(large, 1, 1500000);
  free(realloc(large, 3000000));
  return NULL;
}

int main(void) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; ++i) {
      if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) abort();
    }
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(100));
      free(malloc(200000));
      _exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) abort();
    for (size_t i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    void* last[kBlocks];  // each gets what another has allocated
    memcpy(last, passed[0], sizeof last);
    memmove(passed[0], passed[1], sizeof passed - sizeof passed[0]);
    memcpy(passed[kThreads - 1], last, sizeof last);
  }
  return 0;
}
