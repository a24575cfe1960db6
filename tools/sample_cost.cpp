// What a sampled block costs (docs/sampling.md): times the mallocs that sample, and the frees of their blocks.
//
//   c++ -O2 tools/sample_cost.cpp -o build/sample_cost
//   ANNEX_SAMPLE=250 ANNEX_BACKTRACE=1 build/release/annex run -- build/sample_cost
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr size_t kBytes = 1000;
constexpr size_t kSamples = 400;
constexpr int kDepth = 12;  // of the call stack

double now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// Where sampled blocks of that size lie in their page, and next to no others.
bool looks_sampled(const void* block) {
  const size_t at = reinterpret_cast<uintptr_t>(block) % 4096;
  return at == 0 || at == (4096 - kBytes) / 16 * 16;
}

struct Times {
  std::vector<double> malloc, free;
};

__attribute__((noinline)) int measure(int depth, Times* times) {
  if (depth > 0) return measure(depth - 1, times) + 1;
  while (times->malloc.size() < kSamples) {
    const double start = now_us();
    void* block = malloc(kBytes);
    const double allocated = now_us();
    memset(block, 1, kBytes);
    const bool sampled = looks_sampled(block) && allocated - start > 1.5;
    const double before = now_us();
    free(block);
    const double freed = now_us();
    if (!sampled) continue;
    times->malloc.push_back(allocated - start);
    times->free.push_back(freed - before);
  }
  return 0;
}

void print(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  printf("%-6s  median %5.1f us, mean %5.1f us\n", what, times[times.size() / 2],
         sum / static_cast<double>(times.size()));
}

}  // namespace

int main() {
  Times times;
  measure(kDepth, &times);
  print("malloc", times.malloc);
  print("free", times.free);
}
