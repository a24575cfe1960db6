// The longest call of malloc in a thread half of whose blocks another one has freed meanwhile: the numbers behind
// docs/figures.md (BatchIt, bounded visits).
//   c++ -O2 -pthread tools/longest_malloc.cpp -o build/longest_malloc
//   LD_PRELOAD=build/release/libannex.so build/longest_malloc 10000000
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kBytes = 64;
constexpr size_t kCalls = 20000;

void* volatile kept[kCalls];

}  // namespace

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? strtoul(argv[1], nullptr, 10) : 1'000'000;
  if (count < 2) return fprintf(stderr, "usage: %s [BLOCKS, 2 or more]\n", argv[0]), 2;
  std::vector<double> microseconds(kCalls);
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = malloc(kBytes);
  std::thread([&] {
    for (size_t i = 0; i < count; i += 2) free(blocks[i]);
  }).join();

  for (size_t i = 0; i < kCalls; ++i) {
    const Clock::time_point start = Clock::now();
    kept[i] = malloc(kBytes);
    microseconds[i] = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }
  double all = 0;
  for (const double each : microseconds) all += each;
  std::sort(microseconds.begin(), microseconds.end());
  printf("longest %.1f us, 99.9 %% within %.2f us, all %zu calls %.0f us\n", microseconds.back(),
         microseconds[kCalls * 999 / 1000], kCalls, all);
}
