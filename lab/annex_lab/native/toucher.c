// Touches and releases so many MiB of memory.
//
//   toucher MIB
//
// On a virtual machine the host takes back memory that the guest does not use, and the next first touch of it costs
// milliseconds for every 2 MiB. Without this, that cost falls on whichever allocator is measured first, or after one
// that used little memory. Huge pages, where there are any: the host takes memory back in such pieces, so those are the
// ones to bring back.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20;
  volatile char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  madvise((void*)memory, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
  return 0;
}
