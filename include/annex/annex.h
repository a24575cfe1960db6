/* annex.h: what Annex offers beyond the malloc family of the C library.
 *
 * A program needs nothing from here to run on Annex: linking or preloading the library is enough. These calls are for
 * programs that want to name Annex explicitly, to see where their memory is, or to give memory back.
 *
 * Every call is thread-safe. None of them may be called from a signal handler, except annex_version and annex_owns. */
#ifndef ANNEX_ANNEX_H
#define ANNEX_ANNEX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNEX_VERSION_MAJOR 0
#define ANNEX_VERSION_MINOR 1
#define ANNEX_VERSION_PATCH 0

/* The version and flavour of the library in this process, such as "0.1.0 shared". Static storage. */
const char* annex_version(void);

/* The malloc family under names that nothing else defines: the same heap as malloc and free where Annex provides those,
 * and the only way to it where it does not (a sanitizer build, say). Same contracts as the C library's: NULL and errno
 * ENOMEM when memory is exhausted or a size overflows or exceeds PTRDIFF_MAX. */
void* annex_malloc(size_t bytes);
void* annex_calloc(size_t count, size_t bytes);
void* annex_realloc(void* block, size_t bytes);
void annex_free(void* block);
/* alignment: a power of two, else NULL and errno EINVAL. */
void* annex_aligned_alloc(size_t alignment, size_t bytes);
/* Bytes that the block can hold, at least what was asked for; 0 for NULL. */
size_t annex_usable_size(const void* block);

/* Memory by where it is, in bytes unless the name says otherwise. Sums over all threads, exact when no other thread
 * allocates meanwhile. resident <= committed <= reserved. */
typedef struct annex_stats_t {
  uint64_t reserved;    /* address space mapped: as committed, nothing is set aside */
  uint64_t committed;   /* of it, made readable and writable */
  uint64_t metadata;    /* of committed, Annex's own books */
  uint64_t used;        /* in blocks that the program holds or that sit in a heap's free list, ready to be handed out */
  uint64_t used_spans;  /* of used, in large spans */
  uint64_t slabs;       /* bytes of slabs in use by heaps, used or not */
  uint64_t dirty;       /* free, not yet given back to the system */
  uint64_t peak_in_use; /* largest value that slabs + used_spans has had */
  uint64_t purged_total;    /* given back to the system so far */
  uint64_t huge_page_bytes; /* of committed, for which huge pages are asked */
  uint64_t heaps;           /* count: heaps made so far (one per concurrent thread) */
  uint64_t arenas;          /* count */
  uint64_t slab_refills;    /* count: slow paths of malloc so far */
  uint64_t remote_batches;  /* count: batches of remote frees taken in so far */
  uint64_t support_cpu_us;  /* microseconds of CPU that the support threads have used so far; offload alone */
} annex_stats_t;

/* Fills *out. Returns 0, or -1 and errno EINVAL where out is NULL. */
int annex_stats(annex_stats_t* out);

/* The same as one JSON object. Writes at most size bytes with the terminating zero, like snprintf; returns the length
 * that the whole text has. */
size_t annex_stats_json(char* buffer, size_t size);

/* Gives every free page of the calling thread's heap and of the shared arena back to the system now, without waiting
 * for the purge delay. Returns the bytes given back. */
size_t annex_purge(void);

/* 1 where the address lies in memory that Annex has handed out or holds for handing out, else 0. */
int annex_owns(const void* address);

typedef enum annex_region_kind {
  ANNEX_REGION_SLAB = 1,
  ANNEX_REGION_SPAN = 2,
  ANNEX_REGION_FREE = 3
} annex_region_kind;

/* One piece of the heap: a slab (blocks of one size), a large span (one block) or a free run. */
typedef struct annex_region {
  const void* start;
  size_t bytes; /* address range */
  annex_region_kind kind;
  size_t block_size; /* 0 for a free run */
  size_t blocks;     /* that fit; 1 for a span */
  size_t used;       /* blocks handed out or ready in a heap's free list */
  int dirty;         /* free run: its pages may be resident */
} annex_region;

/* Calls visit for each region in address order until it returns non-zero; returns that value, or 0 at the end. The
 * visitor must not allocate or free. Counts of other threads' slabs are a snapshot. */
int annex_heap_walk(int (*visit)(const annex_region* region, void* context), void* context);

#ifdef __cplusplus
}
#endif
#endif
