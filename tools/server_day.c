// A server's day in a minute: 64 threads answer requests that come in bursts (each second, each ten seconds, and a big
// one at half time), and hardly any in the last quarter. Behind docs/give-back.md: `annex-lab give-back --day` runs it
// under every allocator and reads its resident set from outside.
//   cc -O2 -pthread tools/server_day.c -o build/server_day
//   LD_PRELOAD=build/release/libannex.so build/server_day [SECONDS [THREADS [SEED [RATE]]]]
// SECONDS is how long the day takes (60), RATE multiplies the requests (1). Each request takes and frees some blocks,
// lets one grow, and one in four (in the big burst, one in two) opens a session: 8 to 40 blocks, four in five
// of them for less than a second, one in twenty for half the day. One session in four is freed by another thread than
// the one that opened it. Half of the threads end after some seconds and hand their sessions to a new one. What is
// asked of the allocator follows from the seed alone: when a request comes is a plan, not the clock. Ends with 1 where
// a block does not hold what was written into it, or where there is no memory. Prints lines of a name and values.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"
#include "times.h"

enum {
  kMostThreads = 256,
  kBuckets = 600,         // of the day, in which sessions end
  kMostTemporary = 32,    // blocks of a request
  kStackBytes = 1 << 17,  // of a thread
  kMostTaken = 4096,      // values of what is in use, one each 1/300 of the day
};

typedef struct Session {
  struct Session* next;
  uint64_t number;
  uint64_t bytes;
  uint32_t count;
  struct {
    char* start;
    uint32_t size;
  } blocks[];
} Session;

// What one thread after the other does.
typedef struct {
  uint64_t state;  // of its random numbers
  double due;      // when its next request comes, in days
  double end_of_thread;
  uint32_t ended;  // buckets of sessions that are over
  uint64_t sessions;
  Session* buckets[kBuckets + 1];
  _Atomic(Session*) mailbox;  // sessions of other threads, for this one to free
} Slot;

static Slot slots[kMostThreads];
static double day_s = 60;
static double rate = 1;
static int threads = 64;
static uint64_t seed = 1;
static int64_t start_ns;

static atomic_int running;
static atomic_long live_bytes;
static atomic_ulong requests, opened, handed_over, born, checksum, allocated_bytes;
static atomic_uint work_times[kTimes], answer_times[kTimes];

static uint64_t random_word(Slot* slot) { return mixed(slot->state += 0x9e3779b97f4a7c15u); }

static uint64_t random_below(Slot* slot, uint64_t bound) { return (random_word(slot) >> 16) % bound; }

static double random_part(Slot* slot) { return (double)(random_word(slot) >> 11) / (double)(1ull << 53); }

// ---- Blocks ---------------------------------------------------------------------------------------------------------

static void* take(size_t size) {
  void* const block = malloc(size);
  if (block == NULL) fail("malloc returned NULL");
  atomic_fetch_add_explicit(&allocated_bytes, size, memory_order_relaxed);
  return block;
}

// As many between any size and twice it.
static uint32_t random_size(Slot* slot, uint32_t least, int doublings) {
  const uint32_t base = least << random_below(slot, (uint64_t)doublings);
  return base + (uint32_t)random_below(slot, base);
}

// ---- Sessions -------------------------------------------------------------------------------------------------------

static void free_session(Session* session) {
  for (uint32_t i = 0; i < session->count; ++i) {
    check_block(session->blocks[i].start, session->number + i, session->blocks[i].size);
    free(session->blocks[i].start);
  }
  atomic_fetch_sub_explicit(&live_bytes, (long)session->bytes, memory_order_relaxed);
  free(session);
}

static void free_mail(Slot* slot) {
  Session* session = atomic_exchange(&slot->mailbox, NULL);
  while (session != NULL) {
    Session* const next = session->next;
    free_session(session);
    session = next;
  }
}

static void end_session(Slot* slot, Session* session) {
  if (random_below(slot, 4) != 0) {
    free_session(session);
    return;
  }
  Slot* const other = &slots[random_below(slot, (uint64_t)threads)];
  atomic_fetch_add_explicit(&handed_over, 1, memory_order_relaxed);
  session->next = atomic_load(&other->mailbox);
  while (!atomic_compare_exchange_weak(&other->mailbox, &session->next, session)) continue;
}

static void end_sessions(Slot* slot, uint32_t until) {
  for (; slot->ended < until; ++slot->ended) {
    Session* session = slot->buckets[slot->ended];
    slot->buckets[slot->ended] = NULL;
    while (session != NULL) {
      Session* const next = session->next;
      end_session(slot, session);
      session = next;
    }
  }
}

// In days: a minute's day has most sessions for 0.2 to 1 s, some for 2 to 8 s, a few for 20 to 40 s.
static double lifetime(Slot* slot) {
  const uint64_t kind = random_below(slot, 20);
  const double part = random_part(slot);
  return (kind < 16 ? 0.2 + 0.8 * part : kind < 19 ? 2 + 6 * part : 20 + 20 * part) / 60;
}

static void open_session(Slot* slot) {
  const uint32_t count = 8 + (uint32_t)random_below(slot, 33);
  Session* const session = take(sizeof(Session) + count * sizeof(session->blocks[0]));
  session->number = mixed(((uint64_t)(slot - slots) << 40) + slot->sessions++);
  session->bytes = 0;
  session->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const int is_large = i == 0 && random_below(slot, 8) == 0;
    const uint32_t size = is_large ? random_size(slot, 16384, 3) : random_size(slot, 32, 7);
    session->blocks[i].start = take(size);
    session->blocks[i].size = size;
    session->bytes += size;
    write_block(session->blocks[i].start, session->number + i, size);
  }
  const double bucket = (slot->due + lifetime(slot)) * kBuckets;
  Session** const list = &slot->buckets[bucket < kBuckets ? (uint32_t)bucket : kBuckets];
  session->next = *list;
  *list = session;
  atomic_fetch_add_explicit(&live_bytes, (long)session->bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&opened, 1, memory_order_relaxed);
}

// ---- Requests -------------------------------------------------------------------------------------------------------

static int is_big_burst(double day) { return day >= 0.5 && day < 0.6; }

static void answer(Slot* slot) {
  free_mail(slot);
  end_sessions(slot, (uint32_t)(slot->due * kBuckets));
  char* temporary[kMostTemporary];
  uint32_t sizes[kMostTemporary];
  const uint32_t count = 8 + (uint32_t)random_below(slot, kMostTemporary - 8);
  const uint64_t number = random_word(slot);
  for (uint32_t i = 0; i < count; ++i) {
    sizes[i] = random_size(slot, 16, 7);
    temporary[i] = take(sizes[i]);
    write_block(temporary[i], number + i, sizes[i]);
  }
  const uint32_t whole = random_size(slot, 256, 6);
  uint32_t size = 128;
  char* reply = take(size);
  write_block(reply, number, size);
  while (size < whole) {
    check_block(reply, number, size);
    reply = realloc(reply, size *= 2);
    if (reply == NULL) fail("realloc returned NULL");
    write_block(reply, number, size);
  }
  if (random_below(slot, is_big_burst(slot->due) ? 2 : 4) == 0) open_session(slot);
  for (uint32_t i = 0; i < count; ++i) {
    check_block(temporary[i], number + i, sizes[i]);
    free(temporary[i]);
  }
  free(reply);
  atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&checksum, mixed(number + size), memory_order_relaxed);
}

// Requests a second of one thread, at a time of day (0 to 1).
static double pace(double day) {
  const double minute = day * 60;
  const double second = minute - (double)(int)minute;
  const double ten = minute - (double)((int)(minute / 10) * 10);
  if (day >= 0.75) return 0.5;
  if (is_big_burst(day)) return 200;
  if (ten < 1) return 120;
  if (second < 0.1) return 100;
  return 15;
}

static void* serve(void* argument);

static void start_thread(Slot* slot) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, serve, slot) != 0) fail("a thread could not be started");
  pthread_attr_destroy(&attributes);
  atomic_fetch_add_explicit(&born, 1, memory_order_relaxed);
}

// Half of the threads live 3 to 8 s of a minute, until the last quarter of the day begins.
static void plan_end(Slot* slot) {
  const double end = slot->due + (3 + 5 * random_part(slot)) / 60;
  slot->end_of_thread = (slot - slots) % 2 == 0 && end < 0.75 ? end : 2;
}

static void* serve(void* argument) {
  Slot* const slot = argument;
  while (slot->due < 1) {
    if (slot->due >= slot->end_of_thread) {
      plan_end(slot);
      start_thread(slot);
      return NULL;
    }
    const int64_t due_ns = start_ns + (int64_t)(slot->due * day_s * 1e9);
    if (now_ns() < due_ns) sleep_until(due_ns);
    const int64_t begun_ns = now_ns();
    answer(slot);
    const int64_t done_ns = now_ns();
    note_time(work_times, done_ns - begun_ns);
    note_time(answer_times, done_ns - due_ns);
    // The gap to the next is half to one and a half of the mean.
    slot->due += (0.5 + random_part(slot)) / (pace(slot->due) * rate) / 60;
  }
  sleep_until(start_ns + (int64_t)(day_s * 1e9));
  end_sessions(slot, kBuckets + 1);
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static double peak_mib(void) {
  char line[256];
  long kib = 0;
  FILE* const file = fopen("/proc/self/status", "r");
  if (file == NULL) fail("/proc/self/status cannot be read");
  while (fgets(line, sizeof(line), file) != NULL) sscanf(line, "VmHWM: %ld", &kib);
  fclose(file);
  return (double)kib / 1024;
}

int main(int count, char** argument) {
  if (count > 1) day_s = atof(argument[1]);
  if (count > 2) threads = atoi(argument[2]);
  if (count > 3) seed = strtoull(argument[3], NULL, 10);
  if (count > 4) rate = atof(argument[4]);
  if (day_s <= 0 || rate <= 0 || threads < 1 || threads > kMostThreads) {
    dprintf(STDERR_FILENO, "usage: server_day [SECONDS [THREADS (at most %d) [SEED [RATE]]]]\n", kMostThreads);
    return 2;
  }
  Dl_info found;
  void* const allocate = dlsym(RTLD_DEFAULT, "malloc");
  if (allocate != NULL && dladdr(allocate, &found) != 0) dprintf(STDOUT_FILENO, "served %s\n", found.dli_fname);
  atomic_store(&running, threads);
  start_ns = now_ns();
  for (int i = 0; i < threads; ++i) {
    slots[i].state = mixed(seed * kMostThreads + (uint64_t)i);
    slots[i].due = random_part(&slots[i]) / 600;
    plan_end(&slots[i]);
    start_thread(&slots[i]);
  }
  static double taken[kMostTaken];  // KiB in use
  int values = 0;
  const int64_t step_ns = (int64_t)(day_s * 1e9 / 300);
  while (atomic_load(&running) > 0) {
    sleep_until(start_ns + (values + 1) * step_ns);
    if (values == kMostTaken) fail("the day does not end");
    taken[values++] = (double)atomic_load(&live_bytes) / 1024;
  }
  for (int i = 0; i < threads; ++i) free_mail(&slots[i]);
  if (atomic_load(&live_bytes) != 0) fail("a session was lost");
  printf("peak_mib %.2f\n", peak_mib());
  say_times("work", work_times);
  say_times("answer", answer_times);
  printf("requests %lu\nsessions %lu\nhanded_over %lu\nthreads %lu\nallocated_mib %.3f\nchecksum %lu\nin_use_kib",
         requests, opened, handed_over, born, (double)allocated_bytes / (1 << 20), checksum);
  for (int i = 0; i < values; ++i) printf(" %.0f", taken[i]);
  printf("\n");
  fflush(stdout);
  _exit(0);
}
