// The unit that serves each call in a fixed time: docs/hardware-new-unit.md's example of a test.
#include "hardware/fixed_time.h"

#include <gtest/gtest.h>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Address kMalloc = 0x500000;

struct Rig {
  Rig() : machine(plain_machine()), memory(machine), core(0, machine, memory), unit({.units = 1, .cycles = 40}) {}

  const Machine machine;
  MemorySystem memory;
  Core core;
  FixedTime unit;
};

TEST(FixedTime, AnAllocationHasItsPointerAfterThatTime) {
  Rig rig;
  const Cycles before = rig.core.now();
  const uint64_t number = rig.unit.ask(rig.core, Service::kAllocate, kMalloc, {});
  const Cycles when = rig.unit.answer(number).value();
  EXPECT_GE(when, before + 40);
  rig.unit.have_answer(rig.core, when);
  EXPECT_EQ(rig.core.ready(kRax), when);
  EXPECT_EQ(rig.core.now(), when);
}

TEST(FixedTime, AFreeWaitsForNothing) {
  Rig rig;
  rig.unit.ask(rig.core, Service::kFree, kMalloc, {});  // fetches the code
  const Cycles before = rig.core.now();
  for (int i = 0; i < 10; ++i) rig.unit.ask(rig.core, Service::kFree, kMalloc, {});
  EXPECT_LE(rig.core.now(), before + 40);
}

TEST(FixedTime, CallsDoNotWaitForEachOther) {
  Rig rig;
  const uint64_t first = rig.unit.ask(rig.core, Service::kAllocate, kMalloc, {});
  const Cycles when = rig.unit.answer(first).value();
  rig.unit.have_answer(rig.core, when);
  const uint64_t second = rig.unit.ask(rig.core, Service::kAllocate, kMalloc, {});
  // It does not need the first one's pointer, and is asked while that is on its way.
  EXPECT_LT(rig.unit.answer(second).value(), when + 40);
}

}  // namespace
}  // namespace annex::sim
