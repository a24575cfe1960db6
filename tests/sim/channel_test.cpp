// How requests come to a support core, against times computed by hand: signals without queues, and shared memory.
#include "hardware/channel.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "hardware/support_core.h"
#include "plain_machine.h"

namespace annex::sim {
namespace {

constexpr Cycles kLink = 8;
constexpr Address kEntryOfMalloc = 0x500000;

struct Rig {
  explicit Rig(const std::string& requests, unsigned main_cores = 2, uint32_t queue = 128)
      : Rig(machine_of(requests, main_cores, queue)) {}
  explicit Rig(const Machine& m) : machine(m), memory(machine) {
    for (unsigned i = 0; i < machine.all_cores(); ++i) cores.emplace_back(i, machine, memory);
    unit = std::make_unique<SupportCore>(machine.support_core, Cluster{0, machine.cores}, cores.back(), memory);
    block.start = block.last = 0x400000;
    block.fall_through = 0x400004;
    block.instructions = block.slots = 1;
    block.uops = {{.kind = UopClass::kAlu, .first = true, .destinations = {kFirstInteger}}};
  }

  static Machine machine_of(const std::string& requests, unsigned main_cores, uint32_t queue) {
    Machine machine = plain_machine();
    machine.cores = main_cores;
    machine.llc.bytes = 8 << 20;
    machine.support_core.cores = 1;
    machine.support_core.requests = requests;
    machine.support_core.link = kLink;
    machine.support_core.queue = queue;
    OtherCores support;
    static_cast<CoreKind&>(support) = machine;
    support.name = kSupportCore;
    support.threads = "no";
    machine.others.push_back(support);
    return machine;
  }

  Channel::Asked ask(unsigned core, Service service, Cycles at) {
    cores[core].idle_until(at);
    const Channel::Asked asked = unit->channel().ask(cores[core], service, kEntryOfMalloc);
    Call call;
    call.add(block, {}, block.fall_through);
    last = unit->request(service, core, asked, std::move(call));
    return asked;
  }
  // Of one call alone: from its issue to when its core has the answer.
  Cycles alone(unsigned core, Cycles at) {
    const Channel::Asked asked = ask(core, Service::kAllocate, at);
    unit->advance(kNoTime - 1);
    unit->channel().have_answer(cores[core], unit->answer(last).value());
    return cores[core].now() - asked.issued;
  }

  const Machine machine;
  MemorySystem memory;
  std::deque<Core> cores;
  std::unique_ptr<SupportCore> unit;
  Block block;
  uint64_t last = 0;
};

// --- signals --------------------------------------------------------------------------------------------------------

TEST(Signals, WithoutQueuesACoresNextRequestWaitsUntilItsLastIsAccepted) {
  Rig rig("signals");
  rig.alone(0, 1000);
  rig.ask(0, Service::kFree, 50000);
  const Channel& channel = rig.unit->channel();
  EXPECT_FALSE(channel.room(0, Service::kAllocate));
  EXPECT_TRUE(channel.room(1, Service::kAllocate));
  const Cycles taken = rig.unit->decides_next();
  rig.unit->advance(kNoTime - 1);
  EXPECT_EQ(channel.room(0, Service::kAllocate), taken + kLink);
}

TEST(Signals, WithoutQueuesWhoComesFirstIsAcceptedFirst) {
  Rig rig("signals", 3);
  rig.alone(0, 1000);
  rig.ask(0, Service::kFree, 50000);  // begins at once
  rig.ask(1, Service::kFree, 50001);
  rig.ask(2, Service::kAllocate, 50002);
  rig.unit->advance(kNoTime - 1);
  // Had the one that allocates gone first, it would have waited for one call only.
  EXPECT_GT(rig.unit->channel().mallocs().waited, rig.unit->channel().frees().waited);
}

TEST(Signals, OfQueuesTheOneForMallocsIsFirstOrThatWithTheOldestRequest) {
  const auto waited = [](const std::string& first) {
    Machine machine = Rig::machine_of("queues", 2, 128);
    machine.support_core.first = first;
    Rig rig(machine);
    rig.block.uops.front().kind = UopClass::kDiv;  // so that a call takes longer than the way to the next
    rig.alone(0, 1000);                            // both have the code that asks in their caches
    rig.alone(1, 2000);
    for (int i = 0; i < 20; ++i) rig.ask(1, Service::kFree, 50000);
    rig.ask(0, Service::kAllocate, 50040);  // all frees are there, and few are served
    rig.unit->advance(kNoTime - 1);
    return rig.unit->channel().mallocs().waited;
  };
  const Cycles first = waited("mallocs");
  EXPECT_GT(waited("oldest"), first + 10);  // most of them were served before it
}

TEST(Signals, WithQueuesThereIsAlwaysRoom) {
  Rig rig("queues", 2, 1);
  for (int i = 0; i < 10; ++i) rig.ask(0, Service::kFree, 1000);
  EXPECT_EQ(rig.unit->channel().room(0, Service::kFree), 0u);
}

TEST(Signals, TheFirstRequestBringsTheProcessesRegisters) {
  Rig rig("queues");
  const auto first = rig.ask(0, Service::kFree, 1000);
  const auto second = rig.ask(0, Service::kFree, 2000);
  const auto other = rig.ask(1, Service::kFree, 3000);
  EXPECT_EQ(first.arrival - first.issued, kLink + rig.machine.support_core.registers);
  EXPECT_EQ(second.arrival - second.issued, kLink);
  EXPECT_EQ(other.arrival - other.issued, kLink);
}

// --- shared memory --------------------------------------------------------------------------------------------------

TEST(SharedMemory, AnAllocationTakesATransferForEachLineThatOneWritesAndTheOtherReads) {
  Rig rig("memory");
  rig.alone(0, 1000);
  rig.alone(0, 50000);
  const SupportStatistics before = rig.unit->statistics();
  const auto transfers = [&](unsigned core) {
    return rig.memory.coherence(core).transfers[index_of(Origin::kAllocator)];
  };
  const uint64_t at_main = transfers(0);
  const uint64_t at_support = transfers(2);
  const Cycles took = rig.alone(0, 100000);
  // The support core fetches the mailbox, and the main core the answer.
  EXPECT_EQ(transfers(2) - at_support, 1u);
  EXPECT_EQ(transfers(0) - at_main, 1u);
  const SupportStatistics& s = rig.unit->statistics();
  const Cycles hand_over = rig.machine.llc.latency + rig.machine.coherence.transfer;
  const Cycles taking_back = rig.machine.llc.latency + rig.machine.coherence.invalidate;
  // The mailbox is shared since the support core read it: the exchange takes it back first.
  EXPECT_GE(s.asking - before.asking, taking_back + rig.machine.core.atomic - rig.machine.l1d.latency);
  EXPECT_GE(s.reply - before.reply, hand_over);
  EXPECT_GE(s.answering - before.answering, taking_back);
  EXPECT_GE(took, 2 * hand_over + 2 * taking_back);
  EXPECT_LE(took, 2 * hand_over + 2 * taking_back + 150);  // beside those: pipelines, look-ups in the L1 and L2
}

TEST(SharedMemory, EachAccessIsOfAnInstructionThatMakesOne) {
  for (const char* publish : {"locked", "store"}) {
    for (const char* flags : {"none", "two"}) {
      Machine machine = Rig::machine_of("memory", 2, 128);
      machine.support_core.publish = publish;
      machine.support_core.flags = flags;
      Rig rig(machine);
      rig.alone(0, 1000);
      for (int i = 0; i < 20; ++i) rig.ask(0, Service::kFree, 50000);
      rig.unit->advance(kNoTime - 1);
      for (const Core& core : rig.cores)
        EXPECT_EQ(core.statistics().of(Origin::kAllocator).extra_accesses, 0u) << publish << ", flags: " << flags;
    }
  }
}

TEST(SharedMemory, WithTwoFlagsTheMailboxGoesBackToo) {
  Machine machine = Rig::machine_of("memory", 2, 128);
  machine.support_core.flags = "two";
  Rig flags(machine);
  Rig numbers("memory");
  for (Rig* rig : {&flags, &numbers}) {
    rig->alone(0, 1000);
    rig->alone(0, 50000);
  }
  const auto transfers = [](Rig& rig, unsigned core) {
    return rig.memory.coherence(core).transfers[index_of(Origin::kAllocator)];
  };
  const uint64_t at_main = transfers(flags, 0);
  const uint64_t at_support = transfers(flags, 2);
  EXPECT_GT(flags.alone(0, 100000), numbers.alone(0, 100000));
  // The main core fetches the mailbox, whose flag the support core has cleared, and the answer; the support core the
  // mailbox, and the answer, whose flag the main core has cleared.
  EXPECT_EQ(transfers(flags, 0) - at_main, 2u);
  EXPECT_EQ(transfers(flags, 2) - at_support, 2u);
}

TEST(SharedMemory, AStoreInPlaceOfALockedExchangeLeavesTheMainCoreGoing) {
  Rig locked("memory");
  Machine plain = locked.machine;
  const auto cycles_of_frees = [](Rig& rig) {
    for (int i = 0; i < 20; ++i) {
      rig.ask(0, Service::kFree, rig.cores[0].now());
      rig.unit->advance(kNoTime - 1);
    }
    return rig.cores[0].now();
  };
  plain.support_core.publish = "store";
  Rig stores(plain);
  EXPECT_LT(cycles_of_frees(stores), cycles_of_frees(locked));
  EXPECT_EQ(stores.cores[0].statistics().of(Origin::kAllocator).atomics, 0u);
  EXPECT_EQ(locked.cores[0].statistics().of(Origin::kAllocator).atomics, 20u);
}

TEST(SharedMemory, AFullRingHasNoRoomForFreesUntilOneIsTaken) {
  Rig rig("memory", 2, 4);
  for (int i = 0; i < 4; ++i) rig.ask(0, Service::kFree, 1000);
  const Channel& channel = rig.unit->channel();
  EXPECT_FALSE(channel.room(0, Service::kFree));
  EXPECT_TRUE(channel.room(0, Service::kAllocate));
  EXPECT_TRUE(channel.room(1, Service::kFree));
  rig.unit->advance(kNoTime - 1);
  EXPECT_GT(channel.room(0, Service::kFree).value(), 1000u);
  EXPECT_EQ(channel.frees().taken, 4u);
}

TEST(SharedMemory, PlacesAreLookedAtInTurn) {
  Rig rig("memory", 4);
  rig.alone(3, 1000);  // the last but one place: the tail of core 3 is next
  const Cycles idle = rig.cores.back().now();
  const Channel::Asked asked = rig.ask(1, Service::kFree, 100000);
  rig.unit->advance(kNoTime - 1);
  const Cycles found = asked.arrival + rig.unit->channel().frees().waited;
  const Cycles poll = rig.machine.support_core.poll;
  EXPECT_LT(found, asked.arrival + 8 * poll);
  // The tail of core 1 is the fifth from the tail of core 3 on, of eight places.
  EXPECT_EQ((found - idle) % (8 * poll), 4 * poll);
}

}  // namespace
}  // namespace annex::sim
