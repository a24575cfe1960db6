// What a program keeps resident that has freed most of what it had, and what giving it back costs while it does
// nothing: the program behind docs/give-back.md, one mode for each of the page's rows. `annex-lab give-back` compiles
// it and runs every mode under every allocator.
//   cc -O2 -pthread tools/give_back.c -o build/give_back
//   LD_PRELOAD=build/release/libannex.so build/give_back MODE [SCALE [IDLE_SECONDS]]
// SCALE multiplies the work (1), IDLE_SECONDS is how long the program does nothing (5; `filled` takes three fifths).
// Prints lines of a name and a value. Ends with 1 where a block does not hold what was written into it, or where there
// is no memory. Nothing is allocated by the measuring itself: /proc is read by system calls into buffers on the stack.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blocks.h"

enum {
  kHoleBlocks = 300000,
  kHoleKeeps = 20,  // one in so many
  kThreads = 100,
  kThreadBlocks = 4000,
  kThreadBlockBytes = 1000,
  kFilledMib = 849,
  kFilledKeeps = 10,
  kPairs = 200000,
  kSpans = 256,
  kSpansAlive = 8,
  kPagesTouched = 8,
  kStackBytes = 1 << 16,
  kMostThreads = 256,
};

static double scale = 1;
static double idle_s = 5;

static uint64_t random_word(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// ---- What is measured ---------------------------------------------------------------------------------------------

// The file's text; an empty one where it is gone.
static void read_text(int folder, const char* path, char* text, size_t size) {
  const int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[length < 0 ? 0 : length] = '\0';
}

static double resident_mib(void) {
  char text[256];
  read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
  const char* const second = strchr(text, ' ');
  if (second == NULL) fail("/proc/self/statm cannot be read");
  return (double)strtol(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_s(double duration) {
  struct timespec time = {.tv_sec = (time_t)duration, .tv_nsec = (long)((duration - (double)(time_t)duration) * 1e9)};
  while (nanosleep(&time, &time) != 0) continue;
}

static int own_threads[kMostThreads];  // numbers of the program's threads; all others are the allocator's
static atomic_int own_count;

static void note_own_thread(void) { own_threads[atomic_fetch_add(&own_count, 1)] = (int)syscall(SYS_gettid); }

static bool is_own(int thread) {
  const int count = atomic_load(&own_count);
  for (int i = 0; i < count; ++i) {
    if (own_threads[i] == thread) return true;
  }
  return false;
}

// How often the allocator's threads have gone to sleep: those named annex-purge, and all.
typedef struct {
  int threads;
  long purger;
  long all;
} Helpers;

static Helpers helpers(void) {
  Helpers found = {0};
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail("/proc/self/task cannot be read");
  char entries[4096];
  for (long length; (length = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0;) {
    for (long at = 0; at < length;) {
      const char* const entry = entries + at;  // struct linux_dirent64: length at 16, name at 19
      unsigned short step;
      memcpy(&step, entry + 16, sizeof(step));
      at += step;
      const int thread = atoi(entry + 19);
      if (thread == 0 || is_own(thread)) continue;
      char path[64], text[4096];
      snprintf(path, sizeof(path), "%d/status", thread);
      read_text(folder, path, text, sizeof(text));
      const char* const switches = strstr(text, "\nvoluntary_ctxt_switches:");
      if (switches == NULL) continue;
      const long count = strtol(switches + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
      found.threads += 1;
      found.all += count;
      if (strncmp(text, "Name:\tannex-purge\n", strlen("Name:\tannex-purge\n")) == 0) found.purger += count;
    }
  }
  close(folder);
  return found;
}

static void say(const char* name, double value) { dprintf(STDOUT_FILENO, "%s %.3f\n", name, value); }

// Does nothing, and says what the process did meanwhile. The last two fifths (of 5 s: two) are watched for wake-ups.
static void idle(void) {
  const double process = seconds(CLOCK_PROCESS_CPUTIME_ID), own = seconds(CLOCK_THREAD_CPUTIME_ID);
  sleep_s(idle_s * 3 / 5);
  const Helpers before = helpers();
  sleep_s(idle_s * 2 / 5);
  const Helpers after = helpers();
  const double resident = resident_mib();
  const double others = seconds(CLOCK_PROCESS_CPUTIME_ID) - process - (seconds(CLOCK_THREAD_CPUTIME_ID) - own);
  say("idle_mib", resident);
  say("idle_cpu_ms", others > 0 ? others * 1e3 : 0);
  // A thread that ended takes its count along.
  say("purge_switches", (double)(after.purger > before.purger ? after.purger - before.purger : 0));
  say("helper_switches", (double)(after.all > before.all ? after.all - before.all : 0));
  say("helper_threads", after.threads);
}

// ---- Giving back --------------------------------------------------------------------------------------------------

static void (*collect)(bool);                                       // mimalloc
static void (*release)(void);                                       // gperftools
static void (*release_bytes)(size_t);                               // TCMalloc
static void (*release_cache)(int);                                  // TCMalloc's of one CPU
static int (*control)(const char*, void*, size_t*, void*, size_t);  // jemalloc

// Before anything is measured: dlsym may allocate.
static void find_calls(void) {
  Dl_info found = {0};
  void* const allocate = dlsym(RTLD_DEFAULT, "malloc");
  if (allocate != NULL && dladdr(allocate, &found) != 0) dprintf(STDOUT_FILENO, "served %s\n", found.dli_fname);
  collect = (void (*)(bool))dlsym(RTLD_DEFAULT, "mi_collect");
  release = (void (*)(void))dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
  release_bytes = (void (*)(size_t))dlsym(RTLD_DEFAULT, "MallocExtension_Internal_ReleaseMemoryToSystem");
  release_cache = (void (*)(int))dlsym(RTLD_DEFAULT, "MallocExtension_Internal_ReleaseCpuMemory");
  control = (int (*)(const char*, void*, size_t*, void*, size_t))dlsym(RTLD_DEFAULT, "mallctl");
  Dl_info trim = {0};
  const bool has_trim = dladdr(dlsym(RTLD_DEFAULT, "malloc_trim"), &trim) != 0 && trim.dli_fbase == found.dli_fbase;
  dprintf(STDOUT_FILENO, "given_back_by %s\n",
          collect != NULL         ? "mi_collect"
          : release != NULL       ? "ReleaseFreeMemory"
          : release_bytes != NULL ? "ReleaseMemoryToSystem"
          : control != NULL       ? "arena.purge"
          : has_trim              ? "malloc_trim"
                                  : "nothing");  // glibc's malloc_trim knows nothing of another's blocks
}

static void give_back(void) {
  if (collect != NULL) {
    collect(true);
  } else if (release != NULL) {
    release();
  } else if (release_bytes != NULL) {
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; release_cache != NULL && cpu < cpus; ++cpu) release_cache(cpu);
    release_bytes(SIZE_MAX / 2);
  } else if (control != NULL) {
    control("arena.4096.purge", NULL, NULL, NULL, 0);  // of all arenas: MALLCTL_ARENAS_ALL
  } else {
    malloc_trim(0);
  }
}

static void timed_give_back(const char* name) {
  const double start = seconds(CLOCK_MONOTONIC);
  give_back();
  const double took = seconds(CLOCK_MONOTONIC) - start;
  say(name, resident_mib());
  say("trim_ms", took * 1e3);
}

// ---- Blocks, each with contents that tell which it is ---------------------------------------------------------------

static char** blocks;
static uint32_t* order;
static uint32_t block_count;

// The program's own tables are resident from the start, and not the allocator's.
static void make_tables(uint32_t count) {
  block_count = count;
  blocks = mmap(NULL, count * sizeof(char*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  order =
      mmap(NULL, count * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (blocks == MAP_FAILED || order == MAP_FAILED) fail("no memory for tables");
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  for (uint32_t i = count - 1; i > 0; --i) {
    const uint32_t j = (uint32_t)(random_word() % (i + 1));
    const uint32_t other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

static char* new_block(uint64_t number, size_t size) {
  char* const block = malloc(size);
  if (block == NULL) fail("malloc returned NULL");
  write_block(block, number, size);
  return block;
}

static size_t hole_size(uint64_t number) { return 512 + mixed(number) % 1536; }

// 16 B to 64 KiB, as many between any size and twice it.
static size_t mixed_size(uint64_t number) {
  const uint64_t word = mixed(number);
  const size_t least = (size_t)16 << (word % 12);
  return least + (word >> 32) % least;
}

// Allocates all blocks, then frees all but one in `keeps`, both in the order of the table that is shuffled.
static void fill_and_free(size_t (*size_of)(uint64_t), uint32_t keeps) {
  size_t live = 0;
  for (uint32_t i = 0; i < block_count; ++i) blocks[i] = new_block(i, size_of(i));
  say("full_mib", resident_mib());
  for (uint32_t i = 0; i < block_count; ++i) {
    const uint32_t number = order[i];
    if (i % keeps == 0) {
      live += size_of(number);
    } else {
      free(blocks[number]);
      blocks[number] = NULL;
    }
  }
  say("live_mib", (double)live / (1 << 20));
  say("freed_mib", resident_mib());
}

static void check_kept(size_t (*size_of)(uint64_t)) {
  for (uint32_t i = 0; i < block_count; ++i) {
    if (blocks[i] != NULL) check_block(blocks[i], i, size_of(i));
  }
}

// How much memory the pages are in which some of a kept block lies.
static double used_pages_mib(size_t (*size_of)(uint64_t)) {
  const size_t bytes = 2 * block_count * sizeof(uint64_t);  // no block is larger than a page
  uint64_t* const pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) fail("no memory for tables");
  size_t count = 0;
  for (uint32_t i = 0; i < block_count; ++i) {
    if (blocks[i] == NULL) continue;
    pages[count++] = (uint64_t)blocks[i] / 4096;
    pages[count++] = ((uint64_t)blocks[i] + size_of(i) - 1) / 4096;
  }
  // Sorted without qsort, which may allocate.
  for (size_t gap = count / 2; gap > 0; gap /= 2) {
    for (size_t i = gap; i < count; ++i) {
      for (size_t j = i; j >= gap && pages[j - gap] > pages[j]; j -= gap) {
        const uint64_t other = pages[j];
        pages[j] = pages[j - gap];
        pages[j - gap] = other;
      }
    }
  }
  size_t different = 0;
  for (size_t i = 0; i < count; ++i) different += i == 0 || pages[i] != pages[i - 1];
  munmap(pages, bytes);
  return (double)different * 4096 / (1 << 20);
}

static void start_thread(void* (*run)(void*), pthread_t* thread, void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  if (pthread_create(thread, &attributes, run, argument) != 0) fail("a thread could not be started");
}

static uint32_t scaled(uint32_t whole) {
  const double count = whole * scale;
  return count < 1 ? 1 : (uint32_t)count;
}

// ---- The modes ------------------------------------------------------------------------------------------------------

static void holes(void) {
  make_tables(scaled(kHoleBlocks));
  say("start_mib", resident_mib());
  fill_and_free(hole_size, kHoleKeeps);
}

static void run_holes_trimmed(void) {
  holes();
  timed_give_back("trimmed_mib");
  say("used_pages_mib", used_pages_mib(hole_size));
  check_kept(hole_size);
  const double start = seconds(CLOCK_MONOTONIC);
  for (uint32_t i = 0; i < block_count; ++i) {
    if (blocks[i] == NULL) blocks[i] = new_block(i, hole_size(i));
  }
  say("again_ms", (seconds(CLOCK_MONOTONIC) - start) * 1e3);
  check_kept(hole_size);
}

static void run_holes_one_thread(void) {
  holes();
  idle();
  check_kept(hole_size);
}

static void* sleep_for_good(void* unused) {
  note_own_thread();
  for (;;) pause();
  return unused;
}

static void run_holes_two_threads(void) {
  pthread_t thread;
  start_thread(sleep_for_good, &thread, NULL);
  while (atomic_load(&own_count) < 2) sleep_s(0.001);
  run_holes_one_thread();
}

static pthread_barrier_t barrier;

// Takes 4 MiB, meets the others, and frees them all after they have been looked at.
static void take_and_free(uint64_t first) {
  const uint32_t count = scaled(kThreadBlocks);
  char** const mine = malloc(count * sizeof(char*));
  if (mine == NULL) fail("malloc returned NULL");
  for (uint32_t i = 0; i < count; ++i) mine[i] = new_block(first + i, kThreadBlockBytes);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);  // the resident set is measured in between
  for (uint32_t i = 0; i < count; ++i) check_block(mine[i], first + i, kThreadBlockBytes);
  for (uint32_t i = 0; i < count; ++i) free(mine[i]);
  free(mine);
}

static void* free_and_end(void* first) {
  note_own_thread();
  take_and_free((uint64_t)(uintptr_t)first);
  return NULL;
}

static void* free_and_sleep(void* first) {
  note_own_thread();
  take_and_free((uint64_t)(uintptr_t)first);
  pthread_barrier_wait(&barrier);
  return sleep_for_good(NULL);
}

static void start_all(void* (*run)(void*), pthread_t* threads) {
  say("start_mib", resident_mib());
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  for (uintptr_t i = 0; i < kThreads; ++i) start_thread(run, &threads[i], (void*)(i * kThreadBlocks));
  pthread_barrier_wait(&barrier);
  say("full_mib", resident_mib());
  pthread_barrier_wait(&barrier);
}

static void run_threads_ended(void) {
  static pthread_t threads[kThreads];
  start_all(free_and_end, threads);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  say("freed_mib", resident_mib());
  give_back();
  say("once_mib", resident_mib());
  timed_give_back("trimmed_mib");
}

static void run_threads_asleep(void) {
  static pthread_t threads[kThreads];
  start_all(free_and_sleep, threads);
  pthread_barrier_wait(&barrier);
  sleep_s(idle_s / 100);  // until they are asleep
  say("freed_mib", resident_mib());
  idle();
  timed_give_back("trimmed_mib");
}

static void run_filled(void) {
  const double wanted = kFilledMib * scale * (1 << 20);
  double total = 0;
  uint32_t count = 0;
  while (total < wanted) total += (double)mixed_size(count++);
  make_tables(count);
  say("start_mib", resident_mib());
  fill_and_free(mixed_size, kFilledKeeps);
  sleep_s(idle_s * 3 / 5);
  say("idle_mib", resident_mib());
  const uint32_t pairs = scaled(kPairs);
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (uint32_t i = 0; i < pairs; ++i) {
    char* volatile block = malloc(16 + mixed(i) % 1024);
    if (block == NULL) fail("malloc returned NULL");
    block[0] = 1;
    free(block);
  }
  say("pairs_ms", (seconds(CLOCK_THREAD_CPUTIME_ID) - start) * 1e3);
  say("pairs_mib", resident_mib());
  check_kept(mixed_size);
}

typedef struct {
  char* start;
  size_t size;
  uint64_t number;
} Span;

static char* touched_page(const Span* span, uint64_t page) {
  return span->start + (mixed(span->number * kPagesTouched + page) % (span->size / 4096)) * 4096;
}

static void free_span(Span* span) {
  for (uint64_t page = 0; page < kPagesTouched; ++page) {
    uint64_t word;
    memcpy(&word, touched_page(span, page), sizeof(word));
    if (word != span->number) fail("a span does not hold what was written into it");
  }
  free(span->start);
  span->start = NULL;
}

static void run_spans(void) {
  Span alive[kSpansAlive] = {{0}};
  double most = resident_mib();
  say("start_mib", most);
  const uint32_t spans = scaled(kSpans);
  for (uint64_t number = 1; number <= spans; ++number) {
    Span* const span = &alive[random_word() % kSpansAlive];
    if (span->start != NULL) free_span(span);
    span->number = number;
    span->size = ((size_t)1 << 20) + random_word() % (((size_t)2 << 30) - ((size_t)1 << 20));
    span->start = malloc(span->size);
    if (span->start == NULL) fail("malloc of up to 2 GiB returned NULL");
    for (uint64_t page = 0; page < kPagesTouched; ++page) memcpy(touched_page(span, page), &number, sizeof(number));
    const double resident = resident_mib();
    if (resident > most) most = resident;
  }
  say("full_mib", most);
  for (int i = 0; i < kSpansAlive; ++i) {
    if (alive[i].start != NULL) free_span(&alive[i]);
  }
  say("freed_mib", resident_mib());
  timed_give_back("trimmed_mib");
}

static const struct {
  const char* name;
  void (*run)(void);
} kModes[] = {
    {"holes-trimmed", run_holes_trimmed},
    {"holes-one-thread", run_holes_one_thread},
    {"holes-two-threads", run_holes_two_threads},
    {"threads-ended", run_threads_ended},
    {"threads-asleep", run_threads_asleep},
    {"filled", run_filled},
    {"spans", run_spans},
};

int main(int count, char** argument) {
  if (count > 2) scale = atof(argument[2]);
  if (count > 3) idle_s = atof(argument[3]);
  for (size_t i = 0; count > 1 && i < sizeof(kModes) / sizeof(kModes[0]); ++i) {
    if (strcmp(argument[1], kModes[i].name) != 0) continue;
    note_own_thread();
    find_calls();
    kModes[i].run();
    _exit(0);
  }
  dprintf(STDERR_FILENO, "usage: give_back MODE [SCALE [IDLE_SECONDS]]; modes:");
  for (size_t i = 0; i < sizeof(kModes) / sizeof(kModes[0]); ++i) dprintf(STDERR_FILENO, " %s", kModes[i].name);
  dprintf(STDERR_FILENO, "\n");
  return 2;
}
