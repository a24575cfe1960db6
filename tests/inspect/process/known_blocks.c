// A program with known blocks, for who looks into it: does what it reads from standard input, a word a line, and says
// when that is done. Linked with no Annex of its own, unless the test links one.
//
//   blocks    100,000 blocks of 100 bytes and 20,000 of 1,000, every fourth of which is freed; 64 spans of 100,000
//   threads   a thread with 50,000 blocks of 200 bytes that waits, and one with 10,000 of 300 that has ended
//   free      all of that is freed but for one block in a hundred
//   sample    64 KiB of memory for the test to write to, a block of 200,000 bytes, one of 30,000 of which a byte is
//             written, and 64 of 1,000, of which each second is freed: their addresses
//   hide      only root may look into it from here on
//   churn     allocates and frees for ever, as fast as it can; with nothing else to do
//   stats     annex_stats_json's text
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

extern size_t annex_stats_json(char* buffer, size_t size) __attribute__((weak));

enum { kSmall = 100000, kMiddle = 20000, kLarge = 64, kOfThread = 50000, kOfEnded = 10000 };
static char* small[kSmall];
static char* middle[kMiddle];
static char* large[kLarge];
static char* of_thread[kOfThread];
static char* of_ended[kOfEnded];

static char* block(size_t bytes) {
  char* made = malloc(bytes);
  if (!made) abort();
  memset(made, 1, bytes);
  return made;
}

static void fill(char** blocks, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) blocks[i] = block(bytes);
}

static void release(char** blocks, size_t count, size_t first, size_t step, int keep_hundredth) {
  for (size_t i = first; i < count; i += step) {
    if (keep_hundredth && i % 100 == 1) continue;
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

static int ready[2];

static void* waits(void* unused) {
  (void)unused;
  fill(of_thread, kOfThread, 200);
  if (write(ready[1], "", 1) != 1) abort();
  pause();
  return NULL;
}

static void* ends(void* unused) {
  (void)unused;
  fill(of_ended, kOfEnded, 300);
  return NULL;
}

static void start_threads(void) {
  pthread_t thread;
  char byte;
  if (pipe(ready) != 0) abort();
  pthread_create(&thread, NULL, waits, NULL);
  if (read(ready[0], &byte, 1) != 1) abort();
  pthread_create(&thread, NULL, ends, NULL);
  pthread_join(thread, NULL);
}

static void sample(void) {
  char* blocks[64];
  fill(blocks, 64, 1000);
  char* room = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* span = block(200000);
  char* untouched = malloc(30000);
  untouched[0] = 1;
  uintptr_t addresses[64];
  for (int i = 0; i < 64; ++i) addresses[i] = (uintptr_t)blocks[i];
  for (int i = 1; i < 64; i += 2) free(blocks[i]);
  printf("%p %p %p", (void*)room, (void*)span, (void*)untouched);
  for (int i = 0; i < 64; ++i) printf(" %p", (void*)addresses[i]);
  printf("\n");
}

static void churn(void) {
  static char* kept[4096];
  for (unsigned i = 0, at = 1;; ++i) {
    at = at * 1664525 + 1013904223;
    char** place = &kept[at >> 20];
    free(*place);
    *place = malloc(16 + (at >> 8) % (i % 64 == 0 ? 300000 : 3000));
  }
}

static void say_stats(void) {
  static char text[2048];
  size_t (*stats)(char*, size_t) = annex_stats_json;
  if (!stats) stats = (size_t(*)(char*, size_t))dlsym(RTLD_DEFAULT, "annex_stats_json");
  if (!stats) abort();
  stats(text, sizeof text);
  puts(text);
}

int main(void) {
  char word[64];
  setvbuf(stdout, NULL, _IOLBF, 4096);
  puts("ready");
  while (scanf("%63s", word) == 1) {
    if (!strcmp(word, "blocks")) {
      fill(small, kSmall, 100);
      fill(middle, kMiddle, 1000);
      fill(large, kLarge, 100000);
      release(small, kSmall, 0, 4, 0);
      release(middle, kMiddle, 0, 4, 0);
    } else if (!strcmp(word, "threads")) {
      start_threads();
    } else if (!strcmp(word, "free")) {
      release(small, kSmall, 0, 1, 1);
      release(middle, kMiddle, 0, 1, 1);
      release(large, kLarge, 0, 1, 0);
      release(of_thread, kOfThread, 0, 1, 1);
      release(of_ended, kOfEnded, 0, 1, 1);
    } else if (!strcmp(word, "sample")) {
      sample();
      continue;
    } else if (!strcmp(word, "stats")) {
      say_stats();
      continue;
    } else if (!strcmp(word, "hide")) {
      if (prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
    } else if (!strcmp(word, "churn")) {
      puts("done");
      churn();
    } else if (!strcmp(word, "allocate")) {
      for (int i = 0; i < 1000; ++i) free(block(40000 + (size_t)i * 10));
    } else {
      return 1;
    }
    puts("done");
  }
  return 0;
}
