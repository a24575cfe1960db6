// A program with a malloc of its own that is not to be called before main, as it sets itself up there. The library that
// is preloaded then serves nobody, and must not try.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int has_begun;
static char room[1 << 20] __attribute__((aligned(64)));
static size_t used;

static void* take(size_t bytes) {
  if (!has_begun) {
    static const char kMessage[] = "called before main\n";
    if (write(2, kMessage, sizeof kMessage - 1) < 0) _exit(4);
    _exit(3);
  }
  size_t* head = (size_t*)(room + used);
  used += (bytes + 2 * 64 - 1) / 64 * 64;
  if (used > sizeof room) _exit(5);
  *head = bytes;
  return (char*)head + 16;
}

void* malloc(size_t bytes) { return take(bytes); }
void* calloc(size_t count, size_t bytes) { return take(count * bytes); }  // fresh room is zero
void free(void* block) {
  if (block != NULL && !has_begun) _exit(3);
}
void* realloc(void* block, size_t bytes) {
  void* const larger = take(bytes);
  if (block != NULL) {
    const size_t before = *(size_t*)((char*)block - 16);
    memcpy(larger, block, before < bytes ? before : bytes);
  }
  return larger;
}

int main(void) {
  has_begun = 1;
  char* const text = strdup("a line");
  return strcmp(text, "a line") == 0 && text > room && text < room + sizeof room ? 0 : 1;
}
