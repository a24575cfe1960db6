// Blocks of one size: many allocated, then all freed in the order of allocation; then the next size.
// Stands for: bench-malloc-simple of the GNU C library's own benchmarks, used by the mimalloc and BatchIt papers.

#include "workload.h"

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Blocks of one size, allocated and freed in order (glibc-simple).",
                            workload::Chance::kNone);
  options.one_thread();
  const uint64_t blocks = options.work("--blocks", 2500000, "blocks for each of 16 pairs of size and count");
  options.done();

  constexpr uint32_t kSizes[] = {16, 64, 128, 512};
  constexpr uint32_t kCounts[] = {25, 100, 400, 1600};
  uint64_t ops = 0;
  uint64_t checksum = 0;
  std::vector<char*> held(kCounts[3]);
  const double seconds = workload::seconds_of([&] {
    for (const uint32_t size : kSizes) {
      for (const uint32_t count : kCounts) {
        for (uint64_t round = 0; round < blocks / count + 1; ++round) {
          for (uint32_t i = 0; i < count; ++i) {
            held[i] = static_cast<char*>(malloc(size));
            held[i][0] = static_cast<char>(i);
          }
          for (uint32_t i = 0; i < count; ++i) {
            checksum += static_cast<unsigned char>(held[i][0]);
            free(held[i]);
          }
          ops += count;
        }
      }
    }
  });
  workload::report("glibc-simple", ops, seconds, checksum);
}
