// Small and medium blocks; after each, one that was allocated at any time before is freed, if it still lives.
// Stands for: gauss_free of Mallacc (Kanev et al., ASPLOS 2017), which frees with a probability of one half. Here the
// table is emptied after a pass, so that memory stays bounded.

#include "gauss.h"

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Blocks of which half are freed in random order (gauss_free of Mallacc).");
  options.one_thread();
  const uint32_t steps = options.count("--steps", 200000, "blocks allocated in a pass");
  const uint64_t passes = options.work("--passes", 80, "passes, each with a table of its own");
  options.done();
  workload::Options::accept(steps >= 1, "--steps must be 1 or more");

  workload::Random random(1);
  uint64_t bytes = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t pass = 0; pass < passes; ++pass) {
      workload::GaussTable table(steps);
      for (uint32_t i = 0; i < steps; ++i) table.step(random);
      bytes += table.clear();
    }
  });
  workload::report("gauss-free", passes * steps, seconds, bytes);
}
