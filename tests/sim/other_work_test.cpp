// Work between the allocator's calls, beside the program's own.
#include "guest/other_work.h"

#include <gtest/gtest.h>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Address kNext = 0x500000;

struct Rig {
  Rig() : machine(plain_machine()), memory(machine), core(0, machine, memory) {
    OtherWork(2).after_call(core, kNext);  // fetches the code
    core.idle_until(core.now() + 1000);
    before = core.statistics().of(Origin::kProgram).instructions;
    since = core.now();
  }

  uint64_t instructions() const { return core.statistics().of(Origin::kProgram).instructions - before; }
  Cycles cycles() const { return core.now() - since; }

  const Machine machine;
  MemorySystem memory;
  Core core;
  uint64_t before = 0;
  Cycles since = 0;
};

TEST(OtherWork, NoneTakesNoTime) {
  Rig rig;
  OtherWork(0).after_call(rig.core, kNext);
  EXPECT_EQ(rig.instructions(), 0);
  EXPECT_EQ(rig.cycles(), 0);
}

TEST(OtherWork, TwoInstructionsEndInACycle) {
  Rig rig;
  OtherWork(1000).after_call(rig.core, kNext);
  EXPECT_EQ(rig.instructions(), 1000);
  EXPECT_NEAR(static_cast<double>(rig.cycles()), 500, 20);
}

TEST(OtherWork, IsNoneOfTheAllocators) {
  Rig rig;
  OtherWork(100).after_call(rig.core, kNext);
  EXPECT_EQ(rig.core.statistics().of(Origin::kAllocator).instructions, 0);
}

}  // namespace
}  // namespace annex::sim
