/* What the programs of this folder have in common: each is run as PROGRAM RAW [without], does its work, has what is
 * free given back, says what is resident, writes its profile to RAW, frees what its culprit keeps, and says again what
 * is resident. With `without` the culprit never allocates anything. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) int annex_profile_write(const char* path); /* not there without Annex */

/* What is resident of memory that no file is behind, in bytes. Allocates nothing: stdio's buffers would be in it. */
static unsigned long resident(void) {
  static char text[4096], buffer[4096];
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) abort();
  setvbuf(file, buffer, _IOFBF, sizeof buffer);
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  return strtoul(strstr(text, "Anonymous:") + strlen("Anonymous:"), NULL, 10) * 1024;
}

static void say_resident(const char* when) {
  static char buffer[256];
  setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
  malloc_trim(0);
  printf("%s %lu\n", when, resident());
}

static void write_profile(const char* path) {
  if (annex_profile_write != NULL && annex_profile_write(path) != 0) abort();
}

/* The same numbers in each run. */
static inline unsigned long random_number(void) {
  static unsigned long state = 88172645463325252;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void* filled(void* block, size_t bytes) { return block == NULL ? NULL : memset(block, 1, bytes); }
