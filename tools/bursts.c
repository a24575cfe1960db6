// A server that has nothing to do but for a burst of requests every so many seconds. Behind docs/give-back.md:
// `annex-lab give-back --bursts` runs it under allocators that give back between bursts, and such that do not.
//   cc -O2 -pthread tools/bursts.c -o build/bursts
//   LD_PRELOAD=build/release/libannex.so build/bursts [PERIOD [BURSTS [THREADS [SEED [SCALE]]]]]
// PERIOD is the time from one burst to the next in seconds (1); BURSTS how many are measured (20), one before them is
// not; SCALE multiplies the requests of a burst (1). A request takes 64 blocks of 32 bytes to 4 KiB and writes to them.
// They stay until the burst is over, but for those of one request in 64: of these a thread keeps the last 32. What is
// asked of the allocator follows from the seed alone. Ends with 1 where a block does not hold what was written into it,
// or where there is no memory. Prints lines of a name and a value.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "blocks.h"
#include "times.h"

enum {
  kMostThreads = 256,
  kRequests = 256,  // of a thread in a burst
  kBlocks = 64,     // of a request
  kKept = 32,       // requests whose blocks a thread keeps
};

typedef struct {
  uint64_t number;
  char* starts[kBlocks];
  uint32_t sizes[kBlocks];
} Request;

typedef struct {
  uint64_t state;  // of its random numbers
  Request* requests;
  Request kept[kKept];
  uint64_t keeps;
} Server;

static Server servers[kMostThreads];
static double period_s = 1;
static int bursts = 20;
static int threads = 8;
static uint64_t seed = 1;
static int requests = kRequests;
static int64_t start_ns;
static atomic_ulong checksum, allocated_bytes;
static atomic_uint request_times[kTimes], burst_times[kTimes];

static uint64_t random_word(Server* server) { return mixed(server->state += 0x9e3779b97f4a7c15u); }

static void take(Server* server, Request* request) {
  request->number = random_word(server);
  uint64_t bytes = 0;
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t word = random_word(server) >> 16;
    const uint32_t base = 32u << word % 7;
    request->sizes[i] = base + (uint32_t)(word / 7 % base);
    request->starts[i] = malloc(request->sizes[i]);
    if (request->starts[i] == NULL) fail("malloc returned NULL");
    write_block(request->starts[i], request->number + (uint64_t)i, request->sizes[i]);
    bytes += request->sizes[i];
  }
  atomic_fetch_add_explicit(&checksum, mixed(request->number + bytes), memory_order_relaxed);
  atomic_fetch_add_explicit(&allocated_bytes, bytes, memory_order_relaxed);
}

static void give(Request* request) {
  for (int i = 0; i < kBlocks; ++i) {
    if (request->starts[i] == NULL) continue;
    check_block(request->starts[i], request->number + (uint64_t)i, request->sizes[i]);
    free(request->starts[i]);
  }
}

static void answer_burst(Server* server, int is_measured) {
  const int64_t begun_ns = now_ns();
  int64_t before_ns = begun_ns;
  for (int i = 0; i < requests; ++i) {
    take(server, &server->requests[i]);
    const int64_t after_ns = now_ns();
    if (is_measured) note_time(request_times, after_ns - before_ns);
    before_ns = after_ns;
  }
  for (int i = 0; i < requests; ++i) {
    Request* over = &server->requests[i];
    if (i % 64 == 0) {
      Request* const oldest = &server->kept[server->keeps++ % kKept];
      const Request was = *oldest;
      *oldest = *over;
      *over = was;
    }
    give(over);
  }
  if (is_measured) note_time(burst_times, now_ns() - begun_ns);
}

static void* serve(void* argument) {
  Server* const server = argument;
  for (int burst = 0; burst <= bursts; ++burst) {
    sleep_until(start_ns + (int64_t)(burst * period_s * 1e9));
    answer_burst(server, burst > 0);
  }
  sleep_until(start_ns + (int64_t)((bursts + 1) * period_s * 1e9));
  return NULL;
}

int main(int count, char** argument) {
  double scale = 1;
  if (count > 1) period_s = atof(argument[1]);
  if (count > 2) bursts = atoi(argument[2]);
  if (count > 3) threads = atoi(argument[3]);
  if (count > 4) seed = strtoull(argument[4], NULL, 10);
  if (count > 5) scale = atof(argument[5]);
  requests = (int)(kRequests * scale + 0.5);
  if (period_s <= 0 || bursts < 1 || requests < 1 || threads < 1 || threads > kMostThreads) {
    dprintf(STDERR_FILENO, "usage: bursts [PERIOD [BURSTS [THREADS (at most %d) [SEED [SCALE]]]]]\n", kMostThreads);
    return 2;
  }
  Dl_info found;
  void* const allocate = dlsym(RTLD_DEFAULT, "malloc");
  if (allocate != NULL && dladdr(allocate, &found) != 0) dprintf(STDOUT_FILENO, "served %s\n", found.dli_fname);
  start_ns = now_ns();
  pthread_t running[kMostThreads];
  for (int i = 0; i < threads; ++i) {
    servers[i].state = mixed(seed * kMostThreads + (uint64_t)i);
    servers[i].requests = malloc((size_t)requests * sizeof(Request));
    if (servers[i].requests == NULL) fail("malloc returned NULL");
    if (pthread_create(&running[i], NULL, serve, &servers[i]) != 0) fail("a thread could not be started");
  }
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  say_times("request", request_times);
  say_times("burst", burst_times);
  printf("allocated_mib %.3f\nchecksum %lu\n", (double)allocated_bytes / (1 << 20), checksum);
  fflush(stdout);
  _exit(0);
}
