// Microkernels whose cost on a simulated machine is known by construction: `kernels NAME COUNT [SIZE]` runs COUNT
// rounds of one. What a round is, and what it must cost, is in sim/kernels.py, which takes the difference of two
// counts. SIZE is of what the kernel's name leaves open: the bytes of a chain of loads, the threads of a contended
// kernel.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels_contended.h"

#define TEN(x) x x x x x x x x x x

static void dependent_adds(long count) {
  for (long i = 0; i < count; ++i) __asm__ volatile(TEN(TEN("add $1, %%rax\n"))::: "rax");
}

static void independent_adds(long count) {
  for (long i = 0; i < count; ++i) {
    __asm__ volatile(TEN("lea 1(%%rax), %%r8\nlea 1(%%rax), %%r9\nlea 1(%%rax), %%r10\nlea 1(%%rax), %%r11\n"
                         "lea 1(%%rax), %%rcx\nlea 1(%%rax), %%rdx\nlea 1(%%rax), %%rsi\nlea 1(%%rax), %%rdi\n"
                         "lea 1(%%rax), %%r8\nlea 1(%%rax), %%r9\n")::
                         : "r8", "r9", "r10", "r11", "rcx", "rdx", "rsi", "rdi");
  }
}

static void dependent_multiplies(long count) {
  for (long i = 0; i < count; ++i) __asm__ volatile(TEN(TEN("imul %%rax, %%rax\n"))::: "rax");
}

// A chain of loads through all lines of so many bytes, in an order that no prefetcher guesses.
static void chase(long count, size_t bytes) {
  const size_t lines = bytes / 64;
  const size_t room = bytes < (2 << 20) ? 2 << 20 : bytes;
  char* memory = mmap(NULL, room + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory = (char*)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
  madvise(memory, room, MADV_HUGEPAGE);
  uint32_t* order = malloc(lines * sizeof *order);
  for (size_t i = 0; i < lines; ++i) order[i] = (uint32_t)i;
  uint64_t state = 88172645463325252u;
  for (size_t i = lines - 1; i > 0; --i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const size_t j = state % i;  // Sattolo: one cycle through all
    const uint32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (size_t i = 0; i < lines; ++i) *(void**)(memory + i * 64) = memory + (size_t)order[i] * 64;
  void* at = memory;
  for (size_t i = 0; i < 2 * lines; ++i) at = *(void* volatile*)at;  // into the caches
  for (long i = 0; i < count; ++i) __asm__ volatile(TEN(TEN("mov (%0), %0\n")) : "+r"(at)::"memory");
}

// By two registers, as a program's functions do, and ten pairs a round: a core that guesses which store a load reads
// from, and then waits for none (AMD's Zen 5: 0.12 ns a pair, and 1.7 with more than 40 pairs), has room for them.
static void store_to_load(long count) {
  static uint64_t place;
  uint64_t *to = &place, *from = &place;
  __asm__ volatile("" : "+r"(to), "+r"(from));  // nobody knows that they are the same
  for (long i = 0; i < count * 10; ++i) {
    __asm__ volatile(TEN("mov %%rax, (%0)\nmov (%1), %%rax\n")::"r"(to), "r"(from) : "rax", "memory");
  }
}

static void atomics(long count) {
  static uint64_t counter;
  for (long i = 0; i < count; ++i) __asm__ volatile(TEN(TEN("lock incq %0\n")) : "+m"(counter)::"memory");
}

// A hundred branches a round, taken or not by turns, or at random: by a long table of bits, in the first cache.
static void branches(long count, int random) {
  static uint64_t bits[2048];
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < 2048; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    bits[i] = random ? state : 0x5555555555555555u;
  }
  for (long i = 0; i < count * 100; ++i) {
    const uint64_t bit = bits[i / 64 % 2048] >> (i % 64) & 1;
    __asm__ volatile("test %0, %0\njz 1f\nnop\n1:\n" ::"r"(bit) : "cc");
  }
}

// A round is a page of 4 KiB, touched for the first time.
static void touch_pages(long count) {
  const size_t bytes = (size_t)count * 4096;
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
}

static void system_calls(long count) {
  for (long i = 0; i < count; ++i) syscall(SYS_getppid);
}

// A hundred blocks of tp_small's sizes (Mallacc), each call alone: nothing before or after it overlaps with it.
static void lone_mallocs(long count) {
  static const size_t sizes[] = {40, 72, 104, 136};
  for (long i = 0; i < count * 100; ++i) {
    size_t size = sizes[i % 4];
    __asm__ volatile("lfence" : "+r"(size)::"memory");  // the argument is there
    void* volatile block = malloc(size);
    __asm__ volatile("lfence" ::: "memory");
    free(block);
  }
}

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return fprintf(stderr, "usage: kernels NAME COUNT [SIZE]\n"), 2;
  const char* name = argv[1];
  const long count = atol(argv[2]);
  const size_t size = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
  if (strcmp(name, "dependent-adds") == 0)
    dependent_adds(count);
  else if (strcmp(name, "independent-adds") == 0)
    independent_adds(count);
  else if (strcmp(name, "dependent-multiplies") == 0)
    dependent_multiplies(count);
  else if (strcmp(name, "loads") == 0 && size >= 64)
    chase(count, size);
  else if (strcmp(name, "store-to-load") == 0)
    store_to_load(count);
  else if (strcmp(name, "atomics") == 0)
    atomics(count);
  else if (strcmp(name, "branches-alternating") == 0)
    branches(count, 0);
  else if (strcmp(name, "branches-random") == 0)
    branches(count, 1);
  else if (strcmp(name, "page-touch") == 0)
    touch_pages(count);
  else if (strcmp(name, "system-calls") == 0)
    system_calls(count);
  else if (strcmp(name, "lone-mallocs") == 0)
    lone_mallocs(count);
  else
    return contended(name, count, size);
  return 0;
}
