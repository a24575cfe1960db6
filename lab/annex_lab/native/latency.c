// Times every call of malloc and free that a program makes, and leaves two histograms behind.
//
//   LD_PRELOAD=latency.so:allocator.so ANNEX_LATENCY_FILE=/where/to/leave PROGRAM
//
// (latency.so alone: libc's malloc.) It stands in front of the allocator: each function of the family, and each C++
// operator, is passed on to the next definition in the search order, between two readings of the clock. The reading's
// own cost is measured at the start and taken off. What a call made within another call does (libstdc++'s operator new
// calls malloc) is part of the outer one and counted once.
//
// Only the process that was started with ANNEX_LATENCY_FILE reports: the variable is taken out of the environment, so
// that a program it starts is not measured, and a forked child stops recording. The file is written at exit or _exit; a
// process that a signal ends leaves none.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "latency_histogram.h"

#define EXPORT __attribute__((visibility("default")))
_Static_assert(sizeof(size_t) == sizeof(unsigned long), "the operators' symbols below say size_t is unsigned long");

// ---- the next definitions, and what serves calls until they are known

static struct {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
} next;
static bool next_known, finding;
static bool recording;  // this process is the one to be measured

static char arena[1 << 16] __attribute__((aligned(16)));
static size_t arena_used;

static bool from_arena(const void* block) {
  return (const char*)block >= arena && (const char*)block < arena + sizeof(arena);
}

// dlsym may allocate, on the only thread that there is then. The word before a block is its size.
static void* arena_allocate(size_t size, size_t alignment) {
  if (alignment < 16) alignment = 16;
  const size_t at = (arena_used + 16 + alignment - 1) & ~(alignment - 1);
  if (size > sizeof(arena) || at + size > sizeof(arena)) return NULL;
  arena_used = at + size;
  ((size_t*)(arena + at))[-1] = size;
  return arena + at;
}

static void* next_of(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == NULL) {
    dlerror();  // reads the message, then frees it: here rather than later in a call that is counted
    dlerror();
  }
  return found;
}

static void start_recording(void);

static __attribute__((noinline)) bool find_next(void) {
  if (finding) return false;
  finding = true;
  next.malloc = next_of("malloc");
  next.free = next_of("free");
  next.calloc = next_of("calloc");
  next.realloc = next_of("realloc");
  next.posix_memalign = next_of("posix_memalign");
  next.aligned_alloc = next_of("aligned_alloc");
  next.memalign = next_of("memalign");
  finding = false;
  next_known = true;
  start_recording();
  return true;
}

static inline bool ready(void) { return next_known || find_next(); }

// ---- from the start to the report

static char report_path[4096];
static pid_t reporter;

static void stop_recording(void) { recording = false; }

// Once libc has its environment: it may not yet have when the dynamic linker makes the first call.
static void start_recording(void) {
  static bool asked;
  if (asked || environ == NULL) return;
  asked = true;
  const char* path = getenv("ANNEX_LATENCY_FILE");
  if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof(report_path)) return;
  strcpy(report_path, path);
  unsetenv("ANNEX_LATENCY_FILE");
  if (pthread_key_create(&at_thread_end, pass_on) != 0) return;
  pthread_atfork(NULL, NULL, stop_recording);
  reporter = getpid();
  calibrate();
  recording = true;
}

static const char* object_of(void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "?";
}

static void report(void) {
  static bool reported;
  // A vfork child shares our memory but not our number.
  if (!recording || getpid() != reporter || __atomic_exchange_n(&reported, true, __ATOMIC_ACQ_REL)) return;
  recording = false;
  const int file = open(report_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  while (nanoseconds() - origin_ns < calibration_ns) {
  }
  const uint64_t ticks = ticks_now();
  const double ticks_per_ns = (double)(ticks - origin_ticks) / (double)(nanoseconds() - origin_ns);
  dprintf(file, "annex-latency 1\nticks_per_ns %.6f\noverhead_ns %.3f\ngrain_ns %.3f\n", ticks_per_ns,
          (double)overhead_ticks / ticks_per_ns, (double)grain_ticks / ticks_per_ns);
  dprintf(file, "served malloc %s\nserved free %s\n", object_of((void*)next.malloc), object_of((void*)next.free));
  write_histograms(file, ticks_per_ns);
  dprintf(file, "end\n");
  close(file);
}

static __attribute__((constructor)) void begin(void) {
  ready();
  start_recording();
  at_quick_exit(report);
}

static __attribute__((destructor)) void finish(void) { report(); }

static _Noreturn void leave_now(int status) {
  report();
  for (;;) syscall(SYS_exit_group, status);
}

EXPORT void _exit(int status) { leave_now(status); }
EXPORT void _Exit(int status) { leave_now(status); }

// ---- the family

static inline bool enter(void) {
  if (!recording || self.inside) return false;
  self.inside = true;
  return true;
}

// Runs when operator new throws, too.
static inline void leave(const bool* entered) {
  if (*entered) self.inside = false;
}

#define TIMED(kind, result_type, call)                            \
  do {                                                            \
    const bool entered __attribute__((cleanup(leave))) = enter(); \
    if (!entered) return call;                                    \
    const uint64_t from = ticks_now();                            \
    result_type const result = call;                              \
    const uint64_t took = ticks_now() - from;                     \
    record(kind, took);                                           \
    return result;                                                \
  } while (0)

#define TIMED_FREE(call)                                          \
  do {                                                            \
    const bool entered __attribute__((cleanup(leave))) = enter(); \
    const uint64_t from = entered ? ticks_now() : 0;              \
    call;                                                         \
    if (entered) record(FREE, ticks_now() - from);                \
  } while (0)

EXPORT void* malloc(size_t size) {
  if (UNLIKELY(!ready())) return arena_allocate(size, 16);
  TIMED(MALLOC, void*, next.malloc(size));
}

EXPORT void free(void* block) {
  if (UNLIKELY(!ready() || from_arena(block))) return;
  TIMED_FREE(next.free(block));
}

EXPORT void* calloc(size_t count, size_t size) {
  if (UNLIKELY(!ready())) return size != 0 && count > sizeof(arena) / size ? NULL : arena_allocate(count * size, 16);
  TIMED(MALLOC, void*, next.calloc(count, size));
}

EXPORT void* realloc(void* block, size_t size) {
  if (UNLIKELY(!ready() || from_arena(block))) {
    void* moved = malloc(size);
    if (moved == NULL || block == NULL) return moved;
    const size_t had = ((const size_t*)block)[-1];
    return memcpy(moved, block, had < size ? had : size);
  }
  TIMED(MALLOC, void*, next.realloc(block, size));
}

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  if (UNLIKELY(!ready())) return (*block = arena_allocate(size, alignment)) != NULL ? 0 : ENOMEM;
  TIMED(MALLOC, int, next.posix_memalign(block, alignment, size));
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (UNLIKELY(!ready())) return arena_allocate(size, alignment);
  TIMED(MALLOC, void*, next.aligned_alloc(alignment, size));
}

EXPORT void* memalign(size_t alignment, size_t size) {
  if (UNLIKELY(!ready())) return arena_allocate(size, alignment);
  TIMED(MALLOC, void*, next.memalign(alignment, size));
}

// These are defined in terms of the ones above, as some allocators have their own and others not: so the calls counted
// are the same under each.
EXPORT void* valloc(size_t size) { return memalign((size_t)sysconf(_SC_PAGESIZE), size); }

EXPORT void* pvalloc(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size > SIZE_MAX - page) {
    errno = ENOMEM;
    return NULL;
  }
  return memalign(page, (size + page - 1) & ~(page - 1));
}

EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(block, bytes);
}

EXPORT char* strndup(const char* text, size_t most) {
  const size_t length = strnlen(text, most);
  char* copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  copy[length] = '\0';
  return memcpy(copy, text, length);
}

EXPORT char* strdup(const char* text) { return strndup(text, SIZE_MAX); }

// ---- C23's sized frees and the C++ operators: looked up when first called, as few programs have them

// A C++ library that a C program opens later brings its libstdc++ out of RTLD_NEXT's sight, though it calls us.
static void* late_next_of(const char* symbol) {
  const bool was_inside = self.inside;
  self.inside = true;
  ready();
  void* found = next_of(symbol);
  void* cxx = found == NULL ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (cxx != NULL) found = dlsym(cxx, symbol);
  dlerror();
  dlerror();
  self.inside = was_inside;
  return found;
}

// operator new where nothing defines one, so that there is nobody to throw bad_alloc.
static void* or_abort(void* block) {
  if (block == NULL) abort();
  return block;
}

#define LOOK_UP(symbol, result_type, parameters)               \
  static result_type(*found) parameters;                       \
  static bool looked;                                          \
  if (UNLIKELY(!__atomic_load_n(&looked, __ATOMIC_ACQUIRE))) { \
    found = (result_type(*) parameters)late_next_of(#symbol);  \
    __atomic_store_n(&looked, true, __ATOMIC_RELEASE);         \
  }

#define NEW(symbol, parameters, arguments, otherwise)                    \
  EXPORT void* symbol parameters {                                       \
    LOOK_UP(symbol, void*, parameters)                                   \
    TIMED(MALLOC, void*, found != NULL ? found arguments : (otherwise)); \
  }

#define DELETE(symbol, parameters, arguments)                       \
  EXPORT void symbol parameters {                                   \
    LOOK_UP(symbol, void, parameters)                               \
    TIMED_FREE(found != NULL ? found arguments : next.free(block)); \
  }

typedef const void* nothrow;  // a reference to std::nothrow_t

NEW(_Znwm, (size_t n), (n), or_abort(next.malloc(n)))
NEW(_Znam, (size_t n), (n), or_abort(next.malloc(n)))
NEW(_ZnwmRKSt9nothrow_t, (size_t n, nothrow t), (n, t), next.malloc(n))
NEW(_ZnamRKSt9nothrow_t, (size_t n, nothrow t), (n, t), next.malloc(n))
NEW(_ZnwmSt11align_val_t, (size_t n, size_t a), (n, a), or_abort(next.memalign(a, n)))
NEW(_ZnamSt11align_val_t, (size_t n, size_t a), (n, a), or_abort(next.memalign(a, n)))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, nothrow t), (n, a, t), next.memalign(a, n))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, nothrow t), (n, a, t), next.memalign(a, n))

DELETE(_ZdlPv, (void* block), (block))
DELETE(_ZdaPv, (void* block), (block))
DELETE(_ZdlPvm, (void* block, size_t n), (block, n))
DELETE(_ZdaPvm, (void* block, size_t n), (block, n))
DELETE(_ZdlPvRKSt9nothrow_t, (void* block, nothrow t), (block, t))
DELETE(_ZdaPvRKSt9nothrow_t, (void* block, nothrow t), (block, t))
DELETE(_ZdlPvSt11align_val_t, (void* block, size_t a), (block, a))
DELETE(_ZdaPvSt11align_val_t, (void* block, size_t a), (block, a))
DELETE(_ZdlPvmSt11align_val_t, (void* block, size_t n, size_t a), (block, n, a))
DELETE(_ZdaPvmSt11align_val_t, (void* block, size_t n, size_t a), (block, n, a))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void* block, size_t a, nothrow t), (block, a, t))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void* block, size_t a, nothrow t), (block, a, t))
DELETE(free_sized, (void* block, size_t n), (block, n))
DELETE(free_aligned_sized, (void* block, size_t a, size_t n), (block, a, n))
