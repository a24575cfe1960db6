/* annex.h: what Annex offers beyond the malloc family of the C library.
 *
 * A program needs nothing from here to run on Annex: linking or preloading the library is enough. These functions are
 * for programs that want to see where their memory is, to give memory back, or to call Annex by name.
 *
 * All of them are there since version 0.1.0. All are thread-safe; in a signal handler, only annex_version and
 * annex_owns may be called.
 *
 * Words: a slab is a range of 64 to 192 KiB that is cut into blocks of one size. A span is a range that holds one large
 * block, of more than 32 KiB. A free run is a range that holds neither; it is dirty until its memory has been given
 * back to the system. docs/statistics.md says how to read the numbers. */
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

/* The version of the library in this process and its flavour (shared, solo, offload or hardened), such as
 * "0.1.0 shared". Not to be freed. The macros above are the version that the program was compiled with. */
const char* annex_version(void);

/* The malloc family under names of Annex's own. Where the process's malloc is Annex's, these serve from the same heap,
 * and a block of the one may be given to the other. Where it is not (in a build with a sanitizer, say), these are the
 * only way to Annex, and their blocks must come back to annex_free.
 *
 * They do what the C library's functions do. Blocks are aligned to at least 16 bytes. The result is NULL and errno
 * ENOMEM where memory is exhausted, or a size overflows or exceeds PTRDIFF_MAX. A pointer that is neither NULL nor a
 * block in use ends the process, with one line on standard error that says what is wrong. */
void* annex_malloc(size_t bytes);
void* annex_calloc(size_t count, size_t bytes); /* all zeros */
void* annex_realloc(void* block, size_t bytes); /* as glibc's: 0 bytes free the block, and the result is NULL */
void annex_free(void* block);
/* The alignment is a power of two; else NULL and errno EINVAL. The size need not be a multiple of it. */
void* annex_aligned_alloc(size_t alignment, size_t bytes);
/* How many bytes the program may use of a block: at least what it asked for. 0 for NULL. */
size_t annex_usable_size(const void* block);

/* Where the memory is: of all threads together, in bytes where nothing else is said. Exact while no other thread
 * allocates or frees. */
typedef struct annex_stats_t {
  uint64_t reserved;        /* addresses that are mapped; as committed, since none are set aside */
  uint64_t committed;       /* readable and writable: no more than this can be resident */
  uint64_t metadata;        /* of committed, what Annex itself needs */
  uint64_t used;            /* in blocks that the program has, or that lie in a free list to be handed out next */
  uint64_t used_spans;      /* of used, in spans */
  uint64_t slabs;           /* in slabs, whether their blocks are used or not; not all of it need be resident */
  uint64_t dirty;           /* free, and not yet given back to the system */
  uint64_t peak_in_use;     /* the most that slabs + used_spans has been */
  uint64_t purged_total;    /* given back to the system so far */
  uint64_t huge_page_bytes; /* of committed, where the system is asked for huge pages */
  uint64_t heaps;           /* a count: heaps made so far, which is the most threads that had one at once */
  uint64_t arenas;          /* a count: large ranges of addresses that the heap grows in; most often 1 */
  uint64_t slab_refills;    /* a count: slow paths of malloc so far */
  uint64_t remote_batches;  /* a count: batches of blocks that other threads had freed, taken back so far */
  uint64_t support_cpu_us;  /* microseconds of CPU that the support threads have used; 0 but in the offload flavour */
} annex_stats_t;

/* Fills *out. The result is 0, or -1 and errno EINVAL where out is NULL.
 *
 *   annex_stats_t now;
 *   if (annex_stats(&now) == 0) printf("%" PRIu64 " bytes in use\n", now.used);      (PRIu64: <inttypes.h>) */
int annex_stats(annex_stats_t* out);

/* The same as text: one JSON object with "version", "pid" and the fields by their names. As snprintf: writes at most
 * size bytes, the terminating zero among them, and returns how long the whole text is without it. 1024 bytes are
 * enough. buffer may be NULL where size is 0. */
size_t annex_stats_json(char* buffer, size_t size);

/* Gives free memory back to the system now, without waiting for ANNEX_PURGE_DELAY: that of the calling thread's heap,
 * of heaps whose threads have ended, and all dirty memory. Of memory in which some blocks are in use, the pages go back
 * in which none is. Threads that run keep what lies ready in their heaps. The result is how many bytes were given back.
 * As malloc_trim(0), which says only whether there were any. */
size_t annex_purge(void);

/* A heap profile: which call stacks allocate, what of that is still in use, and what keeps pages resident. It is made
 * of samples of the blocks that are allocated while it is on, so that it costs little whatever the program does; what
 * it says of a site is right in the mean, and within some 1/sqrt(samples of it). ANNEX_PROFILE and `annex profile`
 * need none of these calls. docs/profiling.md says how to read one.
 *
 * annex_profile_start begins one, or changes the rate of one that is on: `rate` is the mean number of bytes of blocks
 * between two samples, 0 for ANNEX_PROFILE_RATE (512 KiB). It loads the unwinder, which allocates. The result is 0, or
 * -1 and errno ENOTSUP where there is no unwinder. annex_profile_stop ends the taking of samples; those that there are
 * stay, and are still seen to be freed. Not in a constructor of the library's own dependencies.
 *
 * annex_profile_write writes what is known by now to a file, which `annex profile show` and `annex profile convert`
 * read; each %p in the path is replaced by the process's number. The result is 0, or -1 and errno. */
int annex_profile_start(size_t rate);
void annex_profile_stop(void);
int annex_profile_write(const char* path);

/* What the calling thread allocates from now on has that label in the profile, such as ("tenant", "42"); a value of
 * NULL takes the label of that key away. Both texts are copied, once for each set of labels that there ever is: for
 * values that are few. The result is 0, or -1 and errno: EINVAL where key is NULL or empty, ENOMEM where memory is
 * exhausted or the thread has 16 labels. */
int annex_profile_label(const char* key, const char* value);

/* 1 where the address lies in a range that Annex keeps blocks in, else 0. 0 says that a pointer is none of Annex's; 1
 * does not say that it is valid: the memory there may be free, or unreadable. */
int annex_owns(const void* address);

typedef enum annex_region_kind {
  ANNEX_REGION_SLAB = 1,
  ANNEX_REGION_SPAN = 2,
  ANNEX_REGION_FREE = 3
} annex_region_kind;

/* A slab, a span or a free run. */
typedef struct annex_region {
  const void* start;
  size_t bytes; /* from start on */
  annex_region_kind kind;
  size_t block_size; /* bytes; 0 for a free run */
  size_t blocks;     /* how many have room: 1 in a span, 0 in a free run */
  size_t used;       /* how many the program has, or lie in a free list to be handed out next */
  int dirty;         /* 1: a free run, whose memory may still be resident; else 0 */
} annex_region;

/* Calls visit for each region, in order of address within each arena, until it returns something else than 0. The
 * result is what it returned, or 0 at the end. `context` is passed on. What other threads do to their slabs meanwhile
 * may or may not be seen. Blocks that are sampled (ANNEX_SAMPLE) lie outside of all regions.
 *
 * A lock is held meanwhile, so visit must not allocate or free (printf may do so), nor call anything of this header but
 * annex_version and annex_owns.
 *
 *   static int add_free(const annex_region* region, void* total) {
 *     if (region->kind == ANNEX_REGION_FREE) *(size_t*)total += region->bytes;
 *     return 0;
 *   }
 *   size_t total = 0;
 *   annex_heap_walk(add_free, &total); */
int annex_heap_walk(int (*visit)(const annex_region* region, void* context), void* context);

#ifdef __cplusplus
}
#endif
#endif
