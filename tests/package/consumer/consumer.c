// A C program linked with Annex: says which flavour it has, after checking that malloc is Annex's in every corner.
#include <annex/annex.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(condition)                                    \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static void* thread(void* block) {
  free(block);  // made by the main thread
  return strdup("made by another thread");
}

int main(void) {
  int on_stack = 0;
  void* aligned = NULL;
  REQUIRE(!annex_owns(&on_stack));
  REQUIRE(annex_owns(malloc(10)) && annex_owns(malloc(10 << 20)) && annex_owns(calloc(3, 7)));
  REQUIRE(posix_memalign(&aligned, 4096, 100) == 0 && annex_owns(aligned));
  REQUIRE(annex_owns(strdup("by libc itself")));

  pthread_t other;
  void* text = NULL;
  REQUIRE(pthread_create(&other, NULL, thread, malloc(1000)) == 0);
  REQUIRE(pthread_join(other, &text) == 0 && annex_owns(text));
  free(text);

  const pid_t child = fork();
  if (child == 0) _exit(annex_owns(malloc(100)) ? 7 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);

  annex_stats_t stats;
  REQUIRE(annex_stats(&stats) == 0 && stats.used > 10 << 20);
  REQUIRE(mallinfo2().uordblks + mallinfo2().hblkhd > 10 << 20);
  puts(annex_version());
  return 0;
}
