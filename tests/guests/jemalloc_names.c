// jemalloc's calls beside the C names, and both on the same blocks, as programs have it that are linked with
// libjemalloc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kZero = 0x40 };

static void* (*mallocx)(size_t, int);
static void* (*rallocx)(void*, size_t, int);
static size_t (*xallocx)(void*, size_t, size_t, int);
static size_t (*sallocx)(const void*, int);
static void (*dallocx)(void*, int);
static void (*sdallocx)(void*, size_t, int);
static size_t (*nallocx)(size_t, int);

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%d: not so: %s (%zu bytes)\n", __LINE__, #condition, size); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

static int all(const char* block, size_t from, size_t to, char byte) {
  for (size_t i = from; i < to; ++i) {
    if (block[i] != byte) return 0;
  }
  return 1;
}

int main(void) {
  size_t size = 0;
#define FIND(name) CHECK((*(void**)& name = dlsym(RTLD_DEFAULT, #name)) != NULL)
  FIND(mallocx);
  FIND(rallocx);
  FIND(xallocx);
  FIND(sallocx);
  FIND(dallocx);
  FIND(sdallocx);
  FIND(nallocx);
  static const size_t sizes[] = {1, 16, 100, 5000, 33000, 200000, 3000000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    size = sizes[i];
    for (int log = 0; log <= 16; log += 4) {
      char* block = mallocx(size, log | kZero);
      CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << log) == 0);
      CHECK(sallocx(block, log) == malloc_usable_size(block) && sallocx(block, log) >= nallocx(size, log));
      CHECK(nallocx(size, log) >= size && all(block, 0, sallocx(block, log), 0));
      memset(block, 7, sallocx(block, log));
      const size_t before = sallocx(block, log);
      block = rallocx(block, 3 * size, log | kZero);
      CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << log) == 0);
      CHECK(all(block, 0, size, 7) && sallocx(block, log) >= 3 * size);
      CHECK(before >= 3 * size || all(block, before, 3 * size, 0));
      const size_t now = sallocx(block, log), grown = xallocx(block, now + 1, 0, log);
      CHECK(grown >= now && grown == sallocx(block, log));
      block = rallocx(block, size, log);
      CHECK(block != NULL && all(block, 0, size, 7));
      switch (log) {
        case 0:
          free(block);
          break;
        case 4:
          dallocx(block, log);
          break;
        default:
          sdallocx(block, size, log);
          break;
      }
    }
    void* const block = malloc(size);
    CHECK(block != NULL && sallocx(block, 0) == malloc_usable_size(block));
    dallocx(realloc(block, size + 50), 0);
  }
  CHECK(mallocx((size_t)1 << 50, 0) == NULL && nallocx((size_t)1 << 50, 0) == 0 && mallocx(100, 60) == NULL);
  return 0;
}
