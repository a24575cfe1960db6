// The kernels of kernels.c whose threads fight for lines: each thread does COUNT operations, on a core of its own. A
// lock's kernel counts what it protects, and fails where two threads were in it at once.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostThreads = 128, kSlots = 64 };

typedef struct {
  _Alignas(64) uint64_t value;
} Line;

static Line word, next_ticket, protected_count;
static Line slots[kMostThreads / 2][kSlots];
static pthread_barrier_t all_here;
static long operations;  // of each thread
static uint64_t threads;

static uint64_t load(const Line* line) { return __atomic_load_n(&line->value, __ATOMIC_ACQUIRE); }
static void store(Line* line, uint64_t value) { __atomic_store_n(&line->value, value, __ATOMIC_RELEASE); }

// One counter.
static void increment(uint64_t self) {
  (void)self;
  for (long i = 0; i < operations; ++i) __atomic_fetch_add(&word.value, 1, __ATOMIC_SEQ_CST);
}

static void test_and_set(uint64_t self) {
  (void)self;
  for (long i = 0; i < operations; ++i) {
    while (__atomic_exchange_n(&word.value, 1, __ATOMIC_ACQUIRE)) {
    }
    store(&protected_count, load(&protected_count) + 1);
    store(&word, 0);
  }
}

static void ticket_lock(uint64_t self) {
  (void)self;
  for (long i = 0; i < operations; ++i) {
    const uint64_t mine = __atomic_fetch_add(&next_ticket.value, 1, __ATOMIC_RELAXED);
    while (load(&word) != mine) {
    }
    store(&protected_count, load(&protected_count) + 1);
    store(&word, mine + 1);
  }
}

// A word that all poll says whose turn it is: the thread writes that it is the next one's.
static void poll_loop(uint64_t self) {
  for (long i = 0; i < operations; ++i) {
    const uint64_t turn = (uint64_t)i * threads + self;
    while (load(&word) != turn) {
    }
    store(&word, turn + 1);
  }
}

// Threads in pairs, each with a ring of its own. A message is a line, which says where the next will be, so that no
// two of them are fetched at once; the receiver clears it.
static void queue(uint64_t self) {
  Line* const ring = slots[self / 2];
  uint64_t at = 0;
  for (long i = 0; i < operations; ++i) {
    uint64_t message = 0;
    if (self % 2 == 0) {
      while (load(&ring[at]) != 0) {
      }
      message = 1 + (at * 5 + 1) % kSlots;  // goes round through all of them
      store(&ring[at], message);
    } else {
      while ((message = load(&ring[at])) == 0) {
      }
      store(&ring[at], 0);
    }
    at = message - 1;
  }
}

static void (*work_of_each)(uint64_t);

static void* begin(void* self) {
  pthread_barrier_wait(&all_here);
  work_of_each((uint64_t)(uintptr_t)self);
  return NULL;
}

// The exit status.
static int contended(const char* name, long count, size_t how_many) {
  static const struct {
    const char* name;
    void (*work)(uint64_t);
    int is_lock;
  } kernels[] = {{"contended-atomics", increment, 0},
                 {"test-and-set", test_and_set, 1},
                 {"ticket-lock", ticket_lock, 1},
                 {"poll-loop", poll_loop, 0},
                 {"queue", queue, 0}};
  size_t found = 0;
  while (found < sizeof kernels / sizeof *kernels && strcmp(name, kernels[found].name) != 0) ++found;
  if (found == sizeof kernels / sizeof *kernels) return fprintf(stderr, "kernels: no kernel is called %s\n", name), 2;
  if (how_many < 1 || how_many > kMostThreads)
    return fprintf(stderr, "kernels: %s takes 1 to %d threads\n", name, kMostThreads), 2;
  threads = how_many, operations = count, work_of_each = kernels[found].work;
  pthread_t others[kMostThreads];
  pthread_barrier_init(&all_here, NULL, (unsigned)threads);
  for (uint64_t i = 1; i < threads; ++i) pthread_create(&others[i], NULL, begin, (void*)(uintptr_t)i);
  begin(NULL);
  for (uint64_t i = 1; i < threads; ++i) pthread_join(others[i], NULL);
  if (kernels[found].is_lock && protected_count.value != threads * (uint64_t)operations)
    return fprintf(stderr, "kernels: %s let two threads in\n", name), 1;
  return 0;
}
