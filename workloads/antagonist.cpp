// Small and medium blocks, half of them freed in random order, in a program that sweeps the caches between two calls.
// Stands for: antagonist of Mallacc (Kanev et al., ASPLOS 2017): an allocator's own data are never in the first-level
// cache when it is called, so their number of cache lines is what counts.
//
// The original runs in a simulator that takes half of the ways of every set of L1D and L2 away. Here a walk over half
// an L2 (or half an L1D, if that is more) does it: a line of each such set is read, and the next walk reads other
// lines, so that they come from further out. All that enters L2 passes through L1D, so of L1D nothing is left.
//
// A run with less work sweeps after the last steps only: the blocks of those before live as in a long run.

#include <unistd.h>

#include <algorithm>

#include "gauss.h"

namespace {

constexpr size_t kLine = 64;
constexpr size_t kWindows = 8;  // walks before one comes back to the same lines: four times the cache

class Evictor {
 public:
  explicit Evictor(size_t bytes) : window_(bytes / kLine), lines_(kWindows * window_) {
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i].value = i;
  }

  // Reads the next window's lines; returns their sum.
  uint64_t evict() {
    uint64_t sum = 0;
    for (size_t i = 0; i < window_; ++i) sum += lines_[at_ + i].value;
    at_ += window_;
    if (at_ == lines_.size()) at_ = 0;
    return sum;
  }

  // The sum that so many walks must give.
  uint64_t sum_of(uint64_t walks) const {
    const uint64_t numbers = uint64_t{window_} * (window_ - 1) / 2;
    uint64_t sum = 0;
    for (uint64_t walk = 0; walk < walks; ++walk) sum += numbers + uint64_t{window_} * window_ * (walk % kWindows);
    return sum;
  }

 private:
  struct alignas(kLine) Line {
    uint64_t value;
  };

  size_t window_;
  std::vector<Line> lines_;
  size_t at_ = 0;
};

uint32_t cache_bytes(int name, uint32_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<uint32_t>(bytes) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "As gauss-free, with caches swept after each step (antagonist of Mallacc).");
  options.one_thread();
  const uint32_t steps = options.count("--steps", 200000, "blocks allocated in a pass");
  const uint64_t sweeps = options.work("--sweeps", 200000, "steps after which the caches are swept: a pass's last");
  const uint32_t l1 = options.count("--l1", cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32768),
                                    "bytes of the first-level data cache (default: what the system says)");
  const uint32_t l2 = options.count("--l2", cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20),
                                    "bytes of the second-level cache (default: what the system says)");
  options.done();
  workload::Options::accept(steps >= 1, "--steps must be 1 or more");

  workload::Random random(1);
  Evictor evictor((l1 > l2 ? l1 : l2) / 2);
  uint64_t swept = 0;
  uint64_t bytes = 0;
  const double seconds = workload::seconds_with_building([&] {
    for (uint64_t left = sweeps; left > 0;) {
      const uint64_t here = std::min<uint64_t>(left, steps);
      workload::GaussTable table(steps);
      for (uint64_t i = here; i < steps; ++i) table.step(random);
      {
        const workload::Region region;
        for (uint64_t i = 0; i < here; ++i) {
          table.step(random);
          swept += evictor.evict();
        }
      }
      bytes += table.clear();
      left -= here;
    }
  });
  workload::require(swept == evictor.sum_of(sweeps), "the sweep read wrong values");
  workload::report("antagonist", sweeps, seconds, bytes);
}
