/* A library with fork handlers that allocate: every size and every call, blocks that outlive the handler, and blocks of
 * other threads. Built once as usual, and once so that its constructor runs before all others. */
#include "handlers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annex/annex.h"

#define PLACES 512
#define ROUND 300

pthread_mutex_t foreign_mutex = PTHREAD_MUTEX_INITIALIZER;
int foreign_handlers_lock = 0;
struct foreign_runs foreign_runs;

static void* places[PLACES];
static void* kept; /* by one handler for the next */

static void demand(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "fork handler: %s\n", what);
  abort();
}

/* The block's address stands at both of its ends. */
static void* stamped(void* block, size_t bytes) {
  demand(block != NULL, "memory exhausted");
  memcpy(block, &block, sizeof block);
  memcpy((char*)block + bytes - sizeof block, &block, sizeof block);
  return block;
}

static void* checked(void* block, size_t bytes) {
  demand(memcmp(block, &block, sizeof block) == 0, "the start of a block is overwritten");
  demand(memcmp((char*)block + bytes - sizeof block, &block, sizeof block) == 0, "the end of a block is overwritten");
  return block;
}

void* foreign_swap(unsigned place, void* block) {
  return __atomic_exchange_n(&places[place % PLACES], block, __ATOMIC_ACQ_REL);
}

static void allocate_all_kinds(void) {
  static const size_t kSizes[] = {16, 48, 500, 2000, 20000, 70000, 400000, 2000000};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    const size_t bytes = kSizes[i];
    /* Of small ones, so many that the list of ready blocks runs out. */
    const int count = bytes <= 48 ? ROUND : bytes <= 2000 ? 40 : 2;
    void* blocks[ROUND];
    for (int j = 0; j < count; ++j) blocks[j] = stamped(annex_malloc(bytes), bytes);
    for (int j = 0; j < count; ++j) annex_free(checked(blocks[j], bytes));
    char* zeroed = annex_calloc(1, bytes);
    demand(zeroed != NULL && zeroed[0] == 0 && zeroed[bytes - 1] == 0, "calloc");
    char* longer = annex_realloc(zeroed, 2 * bytes);
    demand(longer != NULL, "realloc");
    annex_free(annex_realloc(longer, bytes / 2));
    void* aligned = annex_aligned_alloc(4096, bytes);
    demand((uintptr_t)aligned % 4096 == 0, "aligned_alloc");
    annex_free(stamped(aligned, bytes));
  }
}

static void handler(int* runs) {
  const int run = __atomic_fetch_add(runs, 1, __ATOMIC_RELAXED);
  allocate_all_kinds();
  /* What the handler before this one left, and what other threads did; and new ones for them. */
  annex_free(__atomic_exchange_n(&kept, annex_malloc(900), __ATOMIC_ACQ_REL));
  for (unsigned i = 0; i < PLACES; i += 3) annex_free(foreign_swap(i, annex_malloc(40 + i)));
  if (run % 8 == 0) annex_purge();
}

void foreign_prepare(void) {
  if (foreign_handlers_lock) pthread_mutex_lock(&foreign_mutex);
  handler(&foreign_runs.prepare);
}

static void parent(void) {
  handler(&foreign_runs.parent);
  if (foreign_handlers_lock) pthread_mutex_unlock(&foreign_mutex);
}

static void child(void) {
  handler(&foreign_runs.child);
  if (foreign_handlers_lock) pthread_mutex_unlock(&foreign_mutex);
}

/* It allocates nothing here: where that is all that the program's libraries do, Annex has not run before. */
__attribute__((constructor)) static void start(void) {
  demand(pthread_atfork(foreign_prepare, parent, child) == 0, "pthread_atfork");
}
