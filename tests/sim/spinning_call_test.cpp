// A captured call that waits for a thread, by pausing: it is told from one that is long, and from one that pauses once.
#include <gtest/gtest.h>

#include "guest/offload.h"

namespace annex::sim {
namespace {

constexpr size_t kMoreThanCallsDo = 20'000;

CapturedCall after(size_t blocks, const Block& block) {
  CapturedCall captured;
  for (size_t i = 0; i < blocks; ++i) captured.call.add(block, {}, block.start);
  return captured;
}

Block of(UopClass kind) {
  Block block;
  block.instructions = 1;
  block.uops = {{.kind = kind, .first = true}};
  return block;
}

TEST(SpinningCall, IsALongOneThatPauses) {
  const Block pause = of(UopClass::kPause);
  EXPECT_TRUE(Offload::spins(after(kMoreThanCallsDo, pause), pause));
}

TEST(SpinningCall, IsNoneThatWorks) {
  const Block work = of(UopClass::kLoad);
  EXPECT_FALSE(Offload::spins(after(kMoreThanCallsDo, work), work));
}

TEST(SpinningCall, IsNoneThatPausesOnce) {
  const Block pause = of(UopClass::kPause);
  EXPECT_FALSE(Offload::spins(after(1, pause), pause));
}

}  // namespace
}  // namespace annex::sim
