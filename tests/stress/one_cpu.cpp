// The offload flavour where the process may use one CPU: it goes the shared flavour's way, which alone sends batches to
// other threads' heaps (front/offload.h). ctest runs it with one CPU as stress.offload-one-cpu.
#include <gtest/gtest.h>

#include <vector>

#include "common/flavour.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

TEST(RemoteFree, IsSentInBatchesWithOneCpu) {
  if (flavour() != Flavour::kOffload || allowed_cpus() > 1) GTEST_SKIP() << "for the offload flavour with one CPU";
  constexpr std::size_t kBlocks = 1000;
  std::vector<Parcel*> parcels(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) parcels[i] = make_parcel(100, i);
  in_threads(1, [&](int) {
    for (Parcel* parcel : parcels) free_parcel(parcel);
  });
  for (std::size_t i = 0; i < kBlocks; ++i) parcels[i] = make_parcel(100, i);  // takes them in
  const annex_stats_t stats = stats_now();
  EXPECT_GT(stats.remote_batches, 0u);
  EXPECT_EQ(stats.support_cpu_us, 0u);
  for (Parcel* parcel : parcels) free_parcel(parcel);
}

}  // namespace
