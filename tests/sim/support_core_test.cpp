// The support core against times computed by hand, with calls made by hand.
#include "hardware/support_core.h"

#include <gtest/gtest.h>

#include <vector>

#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Cycles kLink = 8;

Machine machine_with_support(unsigned main_cores) {
  Machine machine = plain_machine();
  machine.cores = main_cores;
  machine.llc.bytes = 8 << 20;
  machine.support_core.cores = 1;
  machine.support_core.link = kLink;
  OtherCores support;
  static_cast<CoreKind&>(support) = machine;
  support.name = kSupportCore;
  support.threads = "no";
  support.core.kind = "in-order";
  machine.others.push_back(support);
  return machine;
}

struct Rig {
  explicit Rig(unsigned main_cores = 2) : Rig(machine_with_support(main_cores)) {}
  explicit Rig(const Machine& m)
      : machine(m),
        memory(machine),
        core(machine.cores, machine, memory),
        unit(machine.support_core, {0, machine.cores}, core, memory) {
    // A chain of ten additions that ends in the result, and `after` more that don't matter to it.
    block.start = block.last = 0x400000;
    block.fall_through = 0x400040;
    for (int i = 0; i < 10; ++i) add({.kind = UopClass::kAlu, .sources = {kRax}, .destinations = {kRax}});
  }

  void add(const Uop& uop) {
    block.uops.push_back(uop);
    block.uops.back().first = true;
    ++block.instructions;
    ++block.slots;
  }
  Call call() const {
    Call call;
    call.add(block, {}, block.fall_through);
    return call;
  }
  static Cycles arrival(Cycles issued) { return issued + kLink; }
  uint64_t request(Service service, unsigned from, Cycles issued) {
    return unit.request(service, from, {issued, arrival(issued)}, call());
  }
  const QueueStatistics& mallocs() const { return unit.channel().mallocs(); }
  const QueueStatistics& frees() const { return unit.channel().frees(); }
  // Of an allocation alone: from its issue to its answer.
  Cycles alone(Cycles issued) {
    const uint64_t number = request(Service::kAllocate, 0, issued);
    unit.advance(arrival(issued));
    return unit.answer(number).value() - issued;
  }

  const Machine machine;
  MemorySystem memory;
  Core core;
  SupportCore unit;
  Block block;
};

TEST(SupportCore, AnAllocationThatFindsNobodyTakesLinkServiceAndLink) {
  Rig rig;
  rig.alone(1000);  // fetches the code
  const SupportStatistics before = rig.unit.statistics();
  const Cycles took = rig.alone(100000);
  const Cycles service = rig.unit.statistics().reply - before.reply;
  EXPECT_EQ(took, kLink + service + kLink);
  // The pipeline fills, then the chain.
  EXPECT_EQ(service, rig.machine.others[0].core.front_end + 1 + 10);
  EXPECT_EQ(rig.mallocs().waited, 0u);
}

TEST(SupportCore, TheAnswerLeavesWhenTheResultIsKnown) {
  Rig rig;
  for (int i = 0; i < 10; ++i) {
    rig.add({.kind = UopClass::kMul, .sources = {kFirstInteger + 1}, .destinations = {kFirstInteger + 1}});
  }
  rig.alone(1000);
  const Cycles early = rig.alone(100000);

  Machine at_end = machine_with_support(2);
  at_end.support_core.reply = "at-end";
  Rig late(at_end);
  late.block = rig.block;
  late.alone(1000);
  // The rest of the call, ten multiplications of three cycles that overlap with the chain.
  EXPECT_GE(late.alone(100000), early + 20);
}

TEST(SupportCore, WhoAllocatesGoesBeforeWhoFrees) {
  Rig rig;
  rig.alone(1000);
  std::vector<uint64_t> frees;
  rig.request(Service::kFree, 0, 50000);
  rig.request(Service::kFree, 0, 50001);
  rig.request(Service::kFree, 0, 50002);
  const uint64_t malloc = rig.request(Service::kAllocate, 1, 50003);
  rig.unit.advance(rig.arrival(50003));
  EXPECT_FALSE(rig.unit.answer(malloc));  // it waits for the first free
  const Cycles next = rig.unit.decides_next();
  rig.unit.advance(next);
  const auto answer = rig.unit.answer(malloc);
  ASSERT_TRUE(answer);
  EXPECT_EQ(rig.mallocs().waited, next - rig.arrival(50003));
  EXPECT_EQ(rig.frees().taken, 1u);
  rig.unit.advance(kNoTime - 1);
  EXPECT_EQ(rig.frees().taken, 3u);
}

TEST(SupportCore, OneWithFreeServiceAnswersAfterTwoLinks) {
  Machine machine = machine_with_support(2);
  machine.support_core.service = "none";
  Rig rig(machine);
  EXPECT_EQ(rig.alone(1000), 2 * kLink);
  EXPECT_EQ(rig.unit.statistics().replayed, rig.unit.statistics().steps);
}

TEST(SupportCore, EveryBlockIsRunOnceAndQueuesObeyLittlesLaw) {
  Rig rig(4);
  std::vector<uint64_t> waiting;
  for (unsigned i = 0; i < 1000; ++i) {
    const Service service = i % 3 == 0 ? Service::kAllocate : Service::kFree;
    const Cycles issued = 1000 + i * 5;
    const uint64_t number = rig.request(service, i % 4, issued);
    if (service == Service::kAllocate) waiting.push_back(number);
    rig.unit.advance(rig.arrival(issued));
  }
  rig.unit.advance(kNoTime - 1);
  for (const uint64_t number : waiting) EXPECT_TRUE(rig.unit.answer(number));
  EXPECT_EQ(rig.unit.statistics().served, 1000u);
  EXPECT_EQ(rig.unit.statistics().replayed, rig.unit.statistics().steps);
  EXPECT_GT(rig.frees().overflowed, 0u);
  EXPECT_GE(rig.memory.dram().writes, rig.frees().overflowed);
  for (const QueueStatistics& queue : {rig.mallocs(), rig.frees()}) {
    EXPECT_EQ(queue.taken, queue.requests);
    EXPECT_EQ(queue.area, queue.waited);
  }
}

TEST(SupportCore, WhatAnAllocationTakesIsLinksWaitAndService) {
  Rig rig(4);
  for (unsigned i = 0; i < 200; ++i) {
    rig.request(Service::kAllocate, i % 4, 1000 + i);
    rig.unit.advance(rig.arrival(1000 + i));
  }
  rig.unit.advance(kNoTime - 1);
  const SupportStatistics& s = rig.unit.statistics();
  EXPECT_EQ(s.asked_to_answered, 200 * 2 * kLink + rig.mallocs().waited + s.reply);
}

}  // namespace
}  // namespace annex::sim
