// How latency.c keeps time: the clock, histograms of intervals, and a table of them for every thread.
//
// Synchronization: each thread adds to a table of its own, without locks; a lock guards only the lists of tables, which
// are touched when a thread makes its first call and when it ends. A thread that ends passes its table on to the next
// one. Calls that a thread makes after that (libc clears up last) go to one table shared by all, with atomic additions.
// Nothing here allocates through the malloc family: tables come from mmap.

#pragma once
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// ---- the clock

static uint64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// Fenced on both sides: nothing of the program runs inside the interval, nothing of the call outside.
static inline uint64_t ticks_now(void) {
#if defined(__x86_64__)
  _mm_lfence();
  const uint64_t t = __rdtsc();
  _mm_lfence();
  return t;
#else
  return nanoseconds();
#endif
}

static uint64_t overhead_ticks;           // what an interval with nothing in it measures
static uint64_t grain_ticks;              // the clock moves by multiples of it: 1, or 26 on some virtual machines
static uint64_t origin_ticks, origin_ns;  // the two clocks at the start; at the end they give the ticks per ns
static const uint64_t calibration_ns = 10000000;  // the shortest time over which the clocks are compared

static uint64_t greatest_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

// The overhead is a mean, as a coarse clock gives it right only on average; intervals that something
// interrupted, longer than twice the median, are no part of it.
static void calibrate(void) {
  enum { PAIRS = 2001, LONGEST = 4096 };
  static uint16_t seen[LONGEST];
  const uint64_t first = ticks_now();
  for (int i = 0; i < PAIRS; ++i) {
    const uint64_t from = ticks_now();
    const uint64_t took = ticks_now() - from;
    ++seen[took < LONGEST ? took : LONGEST - 1];
    grain_ticks = greatest_divisor(grain_ticks, from - first);
  }
  int below = 0;
  uint64_t median = 0;
  while ((below += seen[median]) <= PAIRS / 2) ++median;
  uint64_t sum = 0, count = 0;
  for (uint64_t ticks = 0; ticks <= 2 * median && ticks < LONGEST; ++ticks) {
    sum += ticks * seen[ticks];
    count += seen[ticks];
  }
  overhead_ticks = sum / count;
  origin_ticks = ticks_now();
  origin_ns = nanoseconds();
}

// ---- histograms: 64 steps for every power of two, so that a step is at most 1/64 of what it holds

enum { STEP_BITS = 6, STEPS = 1 << STEP_BITS, LARGEST_BITS = 48 };
enum { BUCKETS = (LARGEST_BITS - STEP_BITS) * STEPS + STEPS };

static inline unsigned bucket_of(uint64_t ticks) {
  if (ticks >> LARGEST_BITS) ticks = (1ULL << LARGEST_BITS) - 1;
  const int shift = ticks < STEPS ? 0 : 63 - __builtin_clzll(ticks) - STEP_BITS;
  return (unsigned)(shift * STEPS) + (unsigned)(ticks >> shift);
}

static uint64_t last_of(unsigned bucket) {  // the largest number of ticks that falls into it
  const unsigned shift = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;
  return ((uint64_t)(bucket - shift * STEPS + 1) << shift) - 1;
}

enum kind { MALLOC, FREE, KINDS };
static const char* const kind_name[KINDS] = {"malloc", "free"};

struct histogram {
  uint64_t longest;
  uint64_t calls[BUCKETS];
};

struct table {
  struct histogram of[KINDS];
  struct table* next;  // in the list of all tables
  struct table* idle;  // in the list of those whose thread has ended
};

static struct table shared_table;  // for threads that have given theirs up, and where mmap fails
static struct table* all_tables;
static struct table* idle_tables;
static char tables_lock;
static pthread_key_t at_thread_end;

static __thread struct {
  struct table* table;
  bool inside;  // a call is being timed: those it makes are part of it
} self;

static void lock_tables(void) {
  while (__atomic_test_and_set(&tables_lock, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock_tables(void) { __atomic_clear(&tables_lock, __ATOMIC_RELEASE); }

static void pass_on(void* given) {
  struct table* table = given;
  self.table = &shared_table;
  lock_tables();
  table->idle = idle_tables;
  idle_tables = table;
  unlock_tables();
}

static __attribute__((noinline)) struct table* first_table(void) {
  const int error = errno;  // the call that is being timed has set it for its caller
  lock_tables();
  struct table* table = idle_tables;
  if (table != NULL) {
    idle_tables = table->idle;
  } else {
    void* memory = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
      table = memory;
      table->next = all_tables;
      all_tables = table;
    }
  }
  unlock_tables();
  self.table = table != NULL ? table : &shared_table;
  if (table != NULL) pthread_setspecific(at_thread_end, table);
  errno = error;
  return self.table;
}

static inline void record(enum kind kind, uint64_t took) {
  struct table* table = self.table;
  if (UNLIKELY(table == NULL)) table = first_table();
  // The clocks of two processors may differ by a little, and so a difference may be negative.
  const uint64_t ticks = (int64_t)took > (int64_t)overhead_ticks ? took - overhead_ticks : 0;
  struct histogram* histogram = &table->of[kind];
  uint64_t* count = &histogram->calls[bucket_of(ticks)];
  if (UNLIKELY(table == &shared_table)) {
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    uint64_t seen = __atomic_load_n(&histogram->longest, __ATOMIC_RELAXED);
    while (ticks > seen &&
           !__atomic_compare_exchange_n(&histogram->longest, &seen, ticks, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return;
  }
  // Stores that another thread may read at exit, but that this one alone makes.
  __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
  if (ticks > histogram->longest) __atomic_store_n(&histogram->longest, ticks, __ATOMIC_RELAXED);
}

static void add_up(enum kind kind, struct histogram* sum) {
  memset(sum, 0, sizeof(*sum));
  for (const struct table* table = &shared_table; table != NULL;
       table = table == &shared_table ? all_tables : table->next) {
    const struct histogram* part = &table->of[kind];
    const uint64_t longest = __atomic_load_n(&part->longest, __ATOMIC_RELAXED);
    if (longest > sum->longest) sum->longest = longest;
    for (unsigned i = 0; i < BUCKETS; ++i) sum->calls[i] += __atomic_load_n(&part->calls[i], __ATOMIC_RELAXED);
  }
}

static void write_histograms(int file, double ticks_per_ns) {
  static struct histogram sum;
  lock_tables();
  for (int kind = 0; kind < KINDS; ++kind) {
    add_up(kind, &sum);
    dprintf(file, "max %s %.3f\n", kind_name[kind], (double)sum.longest / ticks_per_ns);
    for (unsigned i = 0; i < BUCKETS; ++i) {
      if (sum.calls[i] == 0) continue;
      dprintf(file, "%s %.3f %llu\n", kind_name[kind], (double)last_of(i) / ticks_per_ns,
              (unsigned long long)sum.calls[i]);
    }
  }
  unlock_tables();
}
