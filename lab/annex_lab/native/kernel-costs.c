// What the kernel takes on this machine, a kind at a time: `kernel-costs` prints a line for each,
//     NAME LOW MEDIAN ns
// of many short batches. A tenth of them take less than LOW, which other work on the machine hardly moves. Which
// parameter of a simulated machine each is for: sim/kernel_costs.py.
//
// Threads are pinned: the first to CPU 0, the second to CPU 1 where it should run beside the first. A kind that this
// machine cannot show (one CPU, no huge pages) is left out.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kBatches = 401, kCalls = 200, kHuge = 2 << 20 };

static int64_t clock_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int64_t now(void) { return clock_of(CLOCK_MONOTONIC); }

static void must(int done, const char* what) {
  if (!done) perror(what), exit(1);
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static char* map_at(void* at, size_t bytes, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0);
  char* memory = mmap(at, bytes, protection, flags, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  return memory;
}
// Small pages only.
static char* map(size_t bytes) {
  char* memory = map_at(NULL, bytes, PROT_READ | PROT_WRITE);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}
static void touch(char* memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) ((volatile char*)memory)[i * kPage] = 1;
}

// Nanoseconds of one of the `count` operations of the statement.
#define EACH(count, statement)                   \
  ({                                             \
    const int64_t from_ = now();                 \
    for (int i = 0; i < (count); ++i) statement; \
    (double)(now() - from_) / (count);           \
  })

// --- calls ----------------------------------------------------------------------------------------------------------

static double plain(void) { return EACH(kCalls, syscall(SYS_getppid)); }
static double clock_call(void) {
  struct timespec t;
  return EACH(kCalls, syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t));
}
// As programs ask for the time: without a system call, where there is a vDSO.
static double clock_vdso(void) { return EACH(kCalls, now()); }
static double yield_alone(void) { return EACH(kCalls, sched_yield()); }

static int file;  // of 16 MiB in memory, resident
static double read_small(void) {
  char bytes[64];
  return EACH(kCalls, must(pread(file, bytes, sizeof bytes, 0) == sizeof bytes, "pread"));
}
static double write_small(void) {
  char bytes[64] = {0};
  return EACH(kCalls, must(pwrite(file, bytes, sizeof bytes, 0) == sizeof bytes, "pwrite"));
}

// Of the processor's time: the rest is sleep.
static double sleep_call(void) {
  const struct timespec moment = {0, 1};
  const int64_t from = clock_of(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < 10; ++i) nanosleep(&moment, NULL);
  return (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - from) / 10;
}

// --- memory ---------------------------------------------------------------------------------------------------------

enum { kRegions = 128, kRegion = 16 * kPage };

// Neighbours differ in protection, so that they don't merge.
static double map_regions(char* at) {
  return EACH(kRegions, map_at(at + (size_t)i * kRegion, kRegion, PROT_READ | (i % 2 ? PROT_WRITE : 0)));
}
static double unmap_regions(char* at) { return EACH(kRegions, munmap(at + (size_t)i * kRegion, kRegion)); }

static char* room;  // addresses where nothing is
static double mmap_call(void) {
  const double took = map_regions(room);
  munmap(room, (size_t)kRegions * kRegion);
  return took;
}
static double munmap_call(void) {
  map_regions(room);
  return unmap_regions(room);
}

// Of a call on a region of which so many pages are resident.
static double unmap_with(size_t pages) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    char* memory = map_at(room, 512 * kPage, PROT_READ | PROT_WRITE);
    madvise(memory, 512 * kPage, MADV_NOHUGEPAGE);
    touch(memory, pages);
    const int64_t from = now();
    munmap(memory, 512 * kPage);
    sum += (double)(now() - from);
  }
  return sum / 4;
}
static double advise_with(size_t pages, int advice) {
  static char* memory;
  if (memory == NULL) memory = map(512 * kPage);
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    touch(memory, pages);
    const int64_t from = now();
    must(madvise(memory, 512 * kPage, advice) == 0, "madvise");
    sum += (double)(now() - from);
  }
  madvise(memory, 512 * kPage, MADV_DONTNEED);
  return sum / 4;
}
static double munmap_page(void) { return (unmap_with(256) - unmap_with(64)) / 192; }
static double dontneed_call(void) { return advise_with(0, MADV_DONTNEED); }
static double dontneed_page(void) { return (advise_with(256, MADV_DONTNEED) - advise_with(64, MADV_DONTNEED)) / 192; }
static double free_call(void) { return advise_with(0, MADV_FREE); }
static double free_page(void) { return (advise_with(256, MADV_FREE) - advise_with(64, MADV_FREE)) / 192; }

// As glibc's arenas grow: what can be used of a reservation, in steps.
static double mprotect_call(void) {
  char* memory = map_at(room, (size_t)kRegions * kRegion, PROT_NONE);
  const double took = EACH(kRegions, mprotect(memory + (size_t)i * kRegion, kRegion, PROT_READ | PROT_WRITE));
  munmap(memory, (size_t)kRegions * kRegion);
  return took;
}
// Moves a region there and back.
static double move_with(size_t pages) {
  char* memory = map(512 * kPage);
  touch(memory, pages);
  char* from = memory;
  char* to = room;
  const double took = EACH(8, {
    must(mremap(from, 512 * kPage, 512 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED, "mremap");
    char* kept = from;
    from = to;
    to = kept;
  });
  munmap(from, 512 * kPage);
  return took;
}
static double mremap_call(void) { return move_with(0); }
static double mremap_page(void) { return (move_with(256) - move_with(64)) / 192; }

static double brk_call(void) {
  char* end = (char*)syscall(SYS_brk, 0);
  const double took = EACH(kRegions, syscall(SYS_brk, end + (size_t)(i + 1) * kRegion));
  syscall(SYS_brk, end);
  return took;
}

// --- page faults ----------------------------------------------------------------------------------------------------

enum { kTouched = 32 };  // pages a batch: few enough that the kernel gives the same ones, which its caches hold

static double fault_of(int writes) {
  static char* memory;
  if (memory == NULL) memory = map(kTouched * kPage);
  volatile char* page = memory;
  if (writes == 2) {  // what has been read is written
    for (int i = 0; i < kTouched; ++i) (void)page[i * kPage];
  }
  const double took = writes ? EACH(kTouched, page[i * kPage] = 1) : EACH(kTouched, (void)page[i * kPage]);
  madvise(memory, kTouched * kPage, MADV_DONTNEED);
  return took;
}
static double fault_anonymous(void) { return fault_of(1); }
static double fault_zero(void) { return fault_of(0); }
static double fault_copy(void) { return fault_of(2); }

static double fault_file(void) {
  volatile char* memory = mmap(NULL, 16 << 20, PROT_READ, MAP_PRIVATE, file, 0);
  must(memory != MAP_FAILED, "mmap");
  const double took = EACH(kTouched, (void)memory[(size_t)i * 64 * kPage]);
  munmap((void*)memory, 16 << 20);
  return took;
}
// To write: each page alone.
static double fault_shared(void) {
  volatile char* memory = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(memory != MAP_FAILED, "mmap");
  const double took = EACH(kTouched, memory[(size_t)i * 64 * kPage] = 1);
  munmap((void*)memory, 16 << 20);
  return took;
}

static void clear(void* at, size_t bytes) { __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory"); }
static double clear_page(void) {
  static char* memory;
  if (memory == NULL) touch(memory = map(kTouched * kPage), kTouched);
  return EACH(kTouched, clear(memory + (size_t)i * kPage, kPage));
}

static char* huge;  // 2 MiB, aligned; none: this kernel gives none
static double fault_huge(void) {
  const double took = EACH(1, ((volatile char*)huge)[0] = 1);
  munmap(huge, kHuge);
  map_at(huge, kHuge, PROT_READ | PROT_WRITE);
  madvise(huge, kHuge, MADV_HUGEPAGE);
  return took;
}
static double clear_huge(void) {
  touch(huge, 512);
  return EACH(1, clear(huge, kHuge));
}
static int has_huge(void) {
  char* memory = map_at(NULL, 2 * kHuge, PROT_READ | PROT_WRITE);
  huge = (char*)(((uintptr_t)memory + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
  madvise(huge, kHuge, MADV_HUGEPAGE);
  huge[0] = 1;
  unsigned char resident[512];
  mincore(huge, kHuge, resident);
  for (int i = 0; i < 512; ++i) {
    if (!(resident[i] & 1)) return 0;
  }
  return 1;
}

// --- threads --------------------------------------------------------------------------------------------------------

static long futex(_Atomic uint32_t* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static _Atomic uint32_t word;
static double wait_again(void) { return EACH(kCalls, futex(&word, FUTEX_WAIT, 12345)); }
static double wake_nobody(void) { return EACH(kCalls, futex(&word, FUTEX_WAKE, 1)); }

// A second thread, on a CPU, that does as `mode` says until told to end.
enum Mode { kSpin, kPingPong, kWait, kYield };
static struct {
  pthread_t thread;
  int cpu;
  enum Mode mode;
  _Atomic int stop;
  _Atomic uint32_t turn;     // kPingPong: whose; kWait: changed by each wake-up
  _Atomic int waits;         // kWait: it is about to
  _Atomic int64_t woken_at;  // kWait
  _Atomic int64_t beat;      // kSpin: when it last ran
  _Atomic int64_t gap;       // kSpin: the longest time between two of its rounds, since this was cleared
} other;

static void* run_other(void* unused) {
  (void)unused;
  pin(other.cpu);
  int64_t last = now();
  while (!other.stop) {
    if (other.mode == kSpin) {
      const int64_t at = now();
      if (at - last > other.gap) other.gap = at - last;
      other.beat = at;
      last = at;
    } else if (other.mode == kYield) {
      sched_yield();
    } else if (other.mode == kPingPong) {
      while (other.turn == 0 && !other.stop) futex(&other.turn, FUTEX_WAIT, 0);
      other.turn = 0;
      futex(&other.turn, FUTEX_WAKE, 1);
    } else {
      const uint32_t seen = other.turn;
      other.waits = 1;
      while (other.turn == seen && !other.stop) futex(&other.turn, FUTEX_WAIT, seen);
      other.woken_at = now();
      while (other.woken_at != 0 && !other.stop) continue;  // until that has been read
    }
  }
  return NULL;
}
static void start_other(enum Mode mode, int cpu) {
  other.mode = mode;
  other.cpu = cpu;
  other.stop = 0;
  other.turn = 0;
  pthread_create(&other.thread, NULL, run_other, NULL);
  usleep(2000);
}
static void stop_other(void) {
  other.stop = 1;
  other.turn = 1000000;
  futex(&other.turn, FUTEX_WAKE, 1);
  pthread_join(other.thread, NULL);
}

// Two threads of one CPU hand a word over: wake the other, wait, switch.
static double hand_over(void) {
  return EACH(50,
              {
                other.turn = 1;
                futex(&other.turn, FUTEX_WAKE, 1);
                while (other.turn == 1) futex(&other.turn, FUTEX_WAIT, 1);
              }) /
         2;
}

// The thread of the other CPU sleeps: what the one that wakes it takes, and when it goes on.
static double wake_call, wake_latency;
static void wake_one(void) {
  while (!other.waits) continue;
  usleep(100);  // until it sleeps
  other.waits = 0;
  other.turn++;
  const int64_t from = now();
  futex(&other.turn, FUTEX_WAKE, 1);
  const int64_t done = now();
  while (other.woken_at == 0) continue;
  wake_call = (double)(done - from);
  wake_latency = (double)(other.woken_at - from);
  other.woken_at = 0;
}
static double wake_sleeper(void) { return wake_one(), wake_call; }
static double wake_to_run(void) { return wake_one(), wake_latency; }

static _Atomic int64_t started_at;
static void* at_once(void* unused) {
  started_at = now();
  return unused;
}
static double create_call, create_latency, create_join;
static void create_one(int cpu) {
  pthread_attr_t attributes;
  cpu_set_t set;
  pthread_t thread;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_attr_init(&attributes);
  if (cpu >= 0) pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  const int64_t from = now();
  pthread_create(&thread, cpu >= 0 ? &attributes : NULL, at_once, NULL);
  const int64_t done = now();
  pthread_join(thread, NULL);
  create_join = (double)(now() - from);
  create_call = (double)(done - from);
  create_latency = (double)(started_at - from);
}
static double create_thread(void) { return create_one(-1), create_call; }
static double create_to_run(void) { return create_one(1), create_latency; }
static double create_and_join(void) { return create_one(-1), create_join; }

// A page given back while the process's other thread runs on another CPU, or does not.
static double dontneed_resident(void) {
  static char* memory;
  if (memory == NULL) memory = map(kPage);
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    touch(memory, 1);
    const int64_t from = now();
    madvise(memory, kPage, MADV_DONTNEED);
    sum += (double)(now() - from);
  }
  return sum / 20;
}
// The same, of one call that is made while the other surely runs; and how long the other was held up.
static double beside_call, beside_gap;
static void give_back_beside(void) {
  static char* memory;
  if (memory == NULL) memory = map(kPage);
  touch(memory, 1);
  while (now() - other.beat > 300) continue;
  other.gap = 0;
  const int64_t from = now();
  madvise(memory, kPage, MADV_DONTNEED);
  const int64_t done = now();
  while (other.beat < done) continue;
  beside_call = (double)(done - from);
  beside_gap = (double)other.gap;
}
static double dontneed_beside(void) { return give_back_beside(), beside_call; }
static double interrupt(void) { return give_back_beside(), beside_gap; }

// --------------------------------------------------------------------------------------------------------------------

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static void measure(const char* name, double (*batch)(void), int batches) {
  static double took[kBatches];
  batch();
  for (int i = 0; i < batches; ++i) took[i] = batch();
  qsort(took, (size_t)batches, sizeof *took, by_value);
  printf("%s %.1f %.1f ns\n", name, took[batches / 10], took[batches / 2]);
  fflush(stdout);
}

int main(void) {
  pin(0);
  file = memfd_create("pages", 0);
  must(file >= 0 && ftruncate(file, 16 << 20) == 0, "memfd_create");
  char bytes[kPage] = {1};
  for (int i = 0; i < (16 << 20) / kPage; ++i) must(write(file, bytes, kPage) == kPage, "write");
  room = map_at(NULL, 64 << 20, PROT_NONE);
  munmap(room, 64 << 20);

  static const struct {
    const char* name;
    double (*batch)(void);
  } kinds[] = {
      {"plain", plain},
      {"clock", clock_call},
      {"clock-vdso", clock_vdso},
      {"yield", yield_alone},
      {"read", read_small},
      {"write", write_small},
      {"sleep", sleep_call},
      {"mmap", mmap_call},
      {"munmap", munmap_call},
      {"munmap-page", munmap_page},
      {"dontneed", dontneed_call},
      {"dontneed-page", dontneed_page},
      {"dontneed-one", dontneed_resident},
      {"free", free_call},
      {"free-page", free_page},
      {"mprotect", mprotect_call},
      {"mremap", mremap_call},
      {"mremap-page", mremap_page},
      {"brk", brk_call},
      {"fault", fault_anonymous},
      {"fault-zero", fault_zero},
      {"fault-copy", fault_copy},
      {"fault-file-16", fault_file},
      {"fault-file", fault_shared},
      {"clear", clear_page},
      {"futex-again", wait_again},
      {"futex-wake", wake_nobody},
      {"create", create_thread},
      {"create-join", create_and_join},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) measure(kinds[i].name, kinds[i].batch, kBatches);
  if (has_huge()) {
    measure("fault-huge", fault_huge, 51);
    measure("clear-huge", clear_huge, 51);
  }
  start_other(kYield, 0);
  measure("yield-switch", yield_alone, 51);
  stop_other();
  start_other(kPingPong, 0);
  measure("hand-over", hand_over, kBatches);
  stop_other();
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) return 0;
  start_other(kWait, 1);
  measure("wake-sleeper", wake_sleeper, kBatches);
  measure("wake-to-run", wake_to_run, kBatches);
  stop_other();
  measure("create-to-run", create_to_run, kBatches);
  start_other(kSpin, 1);
  measure("dontneed-one-beside", dontneed_beside, kBatches);
  measure("interrupt", interrupt, kBatches);
  stop_other();
  return 0;
}
