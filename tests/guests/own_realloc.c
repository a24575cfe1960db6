// A program with an allocator of its own that knows no reallocarray, as valgrind's and many a program's: that comes to
// the library, and has to resize the program's blocks by the program's realloc, as libc's would. Exit status 0.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(16) char pool[1 << 22];
static size_t used;

static int is_mine(const void* block) { return (uintptr_t)block - (uintptr_t)pool < sizeof pool; }

void* malloc(size_t bytes) {
  const size_t start = __atomic_fetch_add(&used, ((bytes + 15) & ~(size_t)15) + 16, __ATOMIC_RELAXED);
  if (start + bytes + 16 > sizeof pool) return NULL;
  memcpy(pool + start, &bytes, sizeof bytes);
  return pool + start + 16;
}

void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }  // never used before, and so zero

void* realloc(void* block, size_t bytes) {
  void* const fresh = malloc(bytes);
  if (block == NULL || fresh == NULL) return fresh;
  size_t before;
  memcpy(&before, (char*)block - 16, sizeof before);
  return memcpy(fresh, block, before < bytes ? before : bytes);
}

void free(void* block) { (void)block; }

int main(void) {
  char* block = malloc(6);
  strcpy(block, "words");
  block = reallocarray(block, 10, 30);
  if (block == NULL || !is_mine(block) || strcmp(block, "words") != 0) return 1;
  if (!is_mine(reallocarray(NULL, 3, 5))) return 2;
  volatile size_t many = SIZE_MAX / 2;
  if (reallocarray(block, many, 3) != NULL) return 3;
  free(block);
  return 0;
}
