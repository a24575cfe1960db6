// The floor: what a program takes when allocation costs next to nothing. Not an allocator to use: a bound to measure
// against, so that one knows how much there is to gain from any allocator on this program and machine.
//
//   LD_PRELOAD=floor.so ANNEX_FLOOR_MIB=256 ANNEX_FLOOR_FILE=/where/to/leave PROGRAM
//
// What other allocators must do and this one does not: its memory is resident, zero and on huge pages before the
// program starts; malloc takes the block that was freed last, or else the next of fresh ones; free puts it upon a list;
// a block's size is in a table apart. No checks, no headers, no coalescing, nothing goes back, no block returns to the
// thread that made it. What it took to populate the memory is left in the file, a line for each process, and is for the
// reader to take off: "WALL_S CPU_S".
//
// Not even so a proof: a program may be faster where its blocks lie better. And no bound at all for programs that fork
// (each first write in the child copies 2 MiB), or whose threads come and go (their lists are lost), or that need more
// than two pools of ANNEX_FLOOR_MIB, one for blocks up to 32 KiB and one for larger ones (what is beyond is not
// resident ahead).

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { CHUNK_SHIFT = 16, CLASSES = 192, SMALL_CLASSES = 64 };
static const size_t chunk = (size_t)1 << CHUNK_SHIFT;
static const size_t largest_small = 32768;
static const size_t pool_bytes = (size_t)32 << 30;  // of address space, for each

// ---- pools: resident from the start

struct pool {
  char* base;
  size_t used;  // grows, under the lock or atomically
};

static struct pool small_pool, large_pool;  // side by side: [small][large]
static uint8_t class_of_chunk[2 * ((size_t)32 << 30) >> CHUNK_SHIFT];
static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void __attribute__((noinline)) set_up(void) {
  const double wall = seconds(CLOCK_MONOTONIC);
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const char* wanted = getenv("ANNEX_FLOOR_MIB");
  const size_t bytes = (wanted != NULL ? strtoul(wanted, NULL, 10) : 1024) << 20;
  const size_t huge = (size_t)2 << 20;
  char* room =
      mmap(NULL, 2 * pool_bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED || bytes > pool_bytes) {
    static const char text[] = "floor: no room for its pools: ANNEX_FLOOR_MIB is at most 32768\n";
    if (write(2, text, sizeof(text) - 1) < 0) _exit(125);
    _exit(125);
  }
  room = (char*)(((uintptr_t)room + huge - 1) & ~(huge - 1));
  madvise(room, 2 * pool_bytes, MADV_HUGEPAGE);
  madvise(room, bytes, MADV_POPULATE_WRITE);
  madvise(room + pool_bytes, bytes, MADV_POPULATE_WRITE);
  large_pool.base = room + pool_bytes;
  small_pool.base = room;
  const char* path = getenv("ANNEX_FLOOR_FILE");
  const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  if (file < 0) return;
  dprintf(file, "%.6f %.6f\n", seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  close(file);
}

// ---- classes: steps of 16 bytes up to 1 KiB, then eight to each power of two

static inline unsigned class_for(size_t bytes) {
  if (LIKELY(bytes <= 1024)) return bytes <= 16 ? 0 : (unsigned)((bytes - 1) >> 4);
  const unsigned shift = 60 - (unsigned)__builtin_clzl(bytes - 1);  // of a step
  return SMALL_CLASSES + (shift - 7) * 8 + (unsigned)(((bytes - 1) >> shift) & 7);
}

static inline size_t size_of(unsigned class) {
  if (class < SMALL_CLASSES) return ((size_t) class + 1) << 4;
  const unsigned step = class - SMALL_CLASSES;
  return (size_t)(step % 8 + 9) << (step / 8 + 7);
}

static inline unsigned class_at(const void* block) {
  return class_of_chunk[(size_t)((const char*)block - small_pool.base) >> CHUNK_SHIFT];
}

// ---- blocks

struct free_block {
  struct free_block* next;
};

static __thread struct {
  struct free_block* free[CLASSES];
  char* fresh[CLASSES];  // the rest of the last chunk of each class
  char* end[CLASSES];
} mine;

static void* take_small(unsigned class) {
  const size_t size = size_of(class);
  if (mine.fresh[class] == NULL || (size_t)(mine.end[class] - mine.fresh[class]) < size) {
    if (small_pool.base == NULL) set_up();
    const size_t at = __atomic_fetch_add(&small_pool.used, chunk, __ATOMIC_RELAXED);
    if (at + chunk > pool_bytes) return NULL;
    mine.fresh[class] = small_pool.base + at;
    mine.end[class] = mine.fresh[class] + chunk;
    class_of_chunk[at >> CHUNK_SHIFT] = (uint8_t) class;
  }
  void* block = mine.fresh[class];
  mine.fresh[class] += size;
  return block;
}

static void* take_large(unsigned class, size_t alignment) {
  if (small_pool.base == NULL) set_up();
  const size_t size = (size_of(class) + chunk - 1) & ~(chunk - 1);
  if (alignment < chunk) alignment = chunk;
  void* block = NULL;
  pthread_mutex_lock(&large_lock);
  const size_t at = (large_pool.used + alignment - 1) & ~(alignment - 1);
  if (size <= pool_bytes && at <= pool_bytes - size) {
    block = large_pool.base + at;
    large_pool.used = at + size;
    class_of_chunk[(pool_bytes + at) >> CHUNK_SHIFT] = (uint8_t) class;
  }
  pthread_mutex_unlock(&large_lock);
  return block;
}

// *fresh: it is zero.
static inline void* allocate(size_t bytes, bool* fresh) {
  if (bytes > pool_bytes) return errno = ENOMEM, NULL;
  const unsigned class = class_for(bytes);
  struct free_block* block = mine.free[class];
  *fresh = block == NULL;
  if (LIKELY(block != NULL)) {
    mine.free[class] = block->next;
    return block;
  }
  void* taken = LIKELY(bytes <= largest_small) ? take_small(class) : take_large(class, chunk);
  if (taken == NULL) errno = ENOMEM;
  return taken;
}

EXPORT void* malloc(size_t bytes) {
  bool fresh;
  return allocate(bytes, &fresh);
}

EXPORT void free(void* block) {
  if (block == NULL) return;
  const unsigned class = class_at(block);
  struct free_block* freed = block;
  freed->next = mine.free[class];
  mine.free[class] = freed;
}

EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, NULL;
  bool fresh;
  void* block = allocate(bytes, &fresh);
  return block == NULL || fresh ? block : memset(block, 0, bytes);
}

// A large block that was made last grows where it is.
static bool grow(void* block, size_t bytes) {
  const unsigned class = class_for(bytes);
  const size_t from = (size_t)((char*)block - large_pool.base);
  const size_t had = (size_of(class_at(block)) + chunk - 1) & ~(chunk - 1);
  const size_t wanted = (size_of(class) + chunk - 1) & ~(chunk - 1);
  pthread_mutex_lock(&large_lock);
  const bool last = from + had == large_pool.used && wanted <= pool_bytes - from;
  if (last) {
    large_pool.used = from + wanted;
    class_of_chunk[(pool_bytes + from) >> CHUNK_SHIFT] = (uint8_t) class;
  }
  pthread_mutex_unlock(&large_lock);
  return last;
}

EXPORT void* realloc(void* block, size_t bytes) {
  if (block == NULL) return malloc(bytes);
  if (bytes == 0) return free(block), NULL;
  const size_t had = size_of(class_at(block));
  if (bytes <= had && bytes >= had / 2) return block;
  if (bytes > had && had > largest_small && bytes < pool_bytes && grow(block, bytes)) return block;
  void* moved = malloc(bytes);
  if (moved == NULL) return NULL;
  memcpy(moved, block, bytes < had ? bytes : had);
  free(block);
  return moved;
}

// Blocks of a power of two lie at multiples of it.
EXPORT void* memalign(size_t alignment, size_t bytes) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) return errno = EINVAL, NULL;
  if (alignment <= 16) return malloc(bytes);
  if (bytes > pool_bytes || alignment > pool_bytes / 2) return errno = ENOMEM, NULL;
  size_t power = alignment;
  while (power < bytes) power *= 2;
  if (power <= chunk) return malloc(power);
  void* block = take_large(class_for(bytes > largest_small ? bytes : largest_small + 1), alignment);
  if (block == NULL) errno = ENOMEM;
  return block;
}

EXPORT void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) {
  const int before = errno;
  void* taken = alignment % sizeof(void*) != 0 ? (errno = EINVAL, NULL) : memalign(alignment, bytes);
  const int error = taken == NULL ? errno : 0;
  errno = before;
  if (taken != NULL) *block = taken;
  return error;
}

EXPORT void* valloc(size_t bytes) { return memalign(4096, bytes); }
EXPORT void* pvalloc(size_t bytes) { return memalign(4096, (bytes + 4095) & ~(size_t)4095); }

EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, NULL;
  return realloc(block, bytes);
}

EXPORT size_t malloc_usable_size(void* block) { return block == NULL ? 0 : size_of(class_at(block)); }

// C++'s operators that programs call most; the others reach these or malloc through libstdc++.
static inline void* or_abort(void* block) { return block == NULL ? abort(), NULL : block; }
EXPORT void* _Znwm(size_t bytes) { return or_abort(malloc(bytes)); }
EXPORT void* _Znam(size_t bytes) { return or_abort(malloc(bytes)); }
EXPORT void _ZdlPv(void* block) { free(block); }
EXPORT void _ZdaPv(void* block) { free(block); }
EXPORT void _ZdlPvm(void* block, size_t bytes) {
  (void)bytes;
  free(block);
}
EXPORT void _ZdaPvm(void* block, size_t bytes) {
  (void)bytes;
  free(block);
}
