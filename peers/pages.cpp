// Measures the page policy that a process really runs under: how much of its heap lies on huge pages.
//   LD_PRELOAD=build/peers/mimalloc3.so pages
// A heap of small blocks is grown to 64 MiB, then one block of 32 MiB is taken; every page of both is written. After
// each the kernel is asked what the process has gained. One JSON line:
//   {"small_huge_mib": 62.0, "small_mib": 66.1, "large_huge_mib": 32.0, "large_mib": 32.0}
// where "huge" is the part on huge pages and the other figure all that became resident meanwhile.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmall = 64 * kMiB;
constexpr size_t kLarge = 32 * kMiB;

struct Memory {
  double huge_mib;
  double all_mib;
};

// The value of one line of the kernel's report, which is in KiB; a line that is missing would be a silent zero.
double mib_of(const char* report, const char* name) {
  const char* line = strstr(report, name);
  if (line == nullptr) {
    fprintf(stderr, "pages: /proc/self/smaps_rollup has no line %s\n", name + 1);
    exit(1);
  }
  return strtod(line + strlen(name), nullptr) / 1024;
}

// Asks without allocating: a stdio stream would take its buffer from the heap under test.
Memory memory_now() {
  char report[8192];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  for (ssize_t got = 1; file >= 0 && got > 0 && length < sizeof report - 1; length += static_cast<size_t>(got)) {
    got = read(file, report + length, sizeof report - 1 - length);
    if (got < 0) break;
  }
  if (file < 0 || length == 0) {
    perror("pages: /proc/self/smaps_rollup");
    exit(1);
  }
  close(file);
  report[length] = '\0';
  const double hugetlb = mib_of(report, "\nPrivate_Hugetlb:");  // not counted as resident by the kernel
  return {mib_of(report, "\nAnonHugePages:") + hugetlb, mib_of(report, "\nAnonymous:") + hugetlb};
}

// The blocks stay allocated, as those of a growing program do.
void grow_with_small_blocks() {
  unsigned seed = 1;
  for (size_t taken = 0; taken < kSmall;) {
    seed = seed * 1664525U + 1013904223U;
    const size_t size = 16 + (seed >> 16) % 497;  // 16 to 512 bytes
    void* block = malloc(size);
    if (block == nullptr) {
      fprintf(stderr, "pages: malloc(%zu) failed\n", size);
      exit(1);
    }
    memset(block, 1, size);
    taken += size;
  }
}

void take_a_large_block() {
  void* block = malloc(kLarge);
  if (block == nullptr) {
    fprintf(stderr, "pages: malloc(%zu) failed\n", kLarge);
    exit(1);
  }
  // Through a volatile pointer, so that the compiler keeps the writes of a block that nobody reads.
  volatile char* bytes = static_cast<char*>(block);
  for (size_t i = 0; i < kLarge; i += 4096) bytes[i] = 1;
}

}  // namespace

int main() {
  const Memory start = memory_now();
  grow_with_small_blocks();
  const Memory small = memory_now();
  take_a_large_block();
  const Memory large = memory_now();
  printf("{\"small_huge_mib\": %.1f, \"small_mib\": %.1f, \"large_huge_mib\": %.1f, \"large_mib\": %.1f}\n",
         small.huge_mib - start.huge_mib, small.all_mib - start.all_mib, large.huge_mib - small.huge_mib,
         large.all_mib - small.all_mib);
  return 0;
}
