// Memory: latencies of open, closed and conflicting rows, the bus, and requests that come out of time order.
#include "machine/dram.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace annex::sim {
namespace {

// 1 GHz: cycles are ns. Times are such that each part shows in a sum.
Machine machine_of(uint32_t channels = 1, uint32_t banks = 4) {
  Machine machine;
  machine.ghz = 1;
  machine.dram = {.channels = channels,
                  .ranks = 1,
                  .banks = banks,
                  .row_bytes = 1024,  // 16 lines
                  .bus_mts = 1000,    // 8 cycles a line
                  .tcas_ns = 20,
                  .trcd_ns = 300,
                  .trp_ns = 4000,
                  .tras_ns = 1000,
                  .controller_ns = 50000};
  return machine;
}

TEST(Dram, LatencyByTheRowsState) {
  Dram dram(machine_of(1, 1));
  EXPECT_EQ(dram.read(0, 0), 50'000u + 300 + 20 + 8);
  EXPECT_EQ(dram.read(1, 100'000) - 100'000, 50'000u + 20 + 8);
  EXPECT_EQ(dram.read(16, 200'000) - 200'000, 50'000u + 4000 + 300 + 20 + 8);
  EXPECT_EQ(dram.read(0, 300'000) - 300'000, 50'000u + 4000 + 300 + 20 + 8);
  EXPECT_EQ(dram.statistics.reads, 4u);
  EXPECT_EQ(dram.statistics.row_opens, 1u);
  EXPECT_EQ(dram.statistics.row_hits, 1u);
  EXPECT_EQ(dram.statistics.row_conflicts, 2u);
  EXPECT_EQ(dram.statistics.bank_cycles, 0u);
  EXPECT_EQ(dram.statistics.bus_cycles, 0u);
}

TEST(Dram, AClosedRowIsOpenedForEachRead) {
  Machine machine = machine_of(1, 1);
  machine.dram.rows = "closed";
  Dram dram(machine);
  for (const Address line : {0, 1, 16}) {
    const Cycles at = 100'000 * (line + 1);
    EXPECT_EQ(dram.read(line, at) - at, 50'000u + 300 + 20 + 8);
  }
  EXPECT_EQ(dram.statistics.row_opens, 3u);
}

TEST(Dram, APrechargeWaitsForTras) {
  Dram dram(machine_of(1, 1));
  dram.read(0, 0);  // activated at 50,000; the bank is busy until 50,308
  // Comes to the bank at 50,400; precharge at 51,000.
  EXPECT_EQ(dram.read(16, 400), 51'000u + 4000 + 300 + 20 + 8);
}

TEST(Dram, OneBankServesOneAfterTheOther) {
  Dram dram(machine_of(1, 1));
  EXPECT_EQ(dram.read(0, 0), 50'328u);
  EXPECT_EQ(dram.read(1, 0), 50'336u);  // its column 8 after the first's
  EXPECT_EQ(dram.read(2, 0), 50'344u);
  EXPECT_EQ(dram.statistics.bank_cycles, 308u + 316u);
}

TEST(Dram, BanksWorkSideBySideAndShareTheBus) {
  Dram dram(machine_of(1, 4));
  std::set<Cycles> ready;
  for (Address line = 0; line < 64; line += 16) ready.insert(dram.read(line, 0));
  EXPECT_EQ(dram.statistics.row_opens, 4u);
  EXPECT_EQ(ready.size(), 4u);
  EXPECT_EQ(*ready.begin(), 50'328u);
  EXPECT_LE(*ready.rbegin(), 50'328u + 4 * 8);
}

TEST(Dram, ChannelsHaveBusesOfTheirOwn) {
  Dram dram(machine_of(2, 4));
  EXPECT_EQ(dram.read(0, 0), 50'328u);
  EXPECT_EQ(dram.read(1, 0), 50'328u);
  EXPECT_EQ(dram.statistics.row_opens, 2u);
}

TEST(Dram, RowsAPowerOfTwoApartSpreadOverTheBanks) {
  Dram dram(machine_of(1, 4));
  for (Address row = 0; row < 4; ++row) dram.read(row * 64, row * 1'000'000);  // all in bank 0 by their low bits
  EXPECT_EQ(dram.statistics.row_opens, 4u);
}

TEST(Dram, WritesTakeTheBus) {
  Dram dram(machine_of());
  // All its slots from 50,000 to 50,800.
  for (Address line = 0; line < 100; ++line) dram.write(line, 0);
  EXPECT_EQ(dram.read(0, 0), 50'800u + 8);
  EXPECT_EQ(dram.statistics.writes, 100u);
}

TEST(Dram, TheFutureDoesNotDelayThePast) {
  Dram alone(machine_of());
  const Cycles expected = alone.read(0, 1000);
  Dram dram(machine_of());
  for (Address line = 0; line < 100; ++line) dram.read(line + 1000, 3000 + line);
  EXPECT_LE(dram.read(0, 1000), expected + 4000 + 8);  // it may find another row open
}

TEST(Dram, BandwidthIsBoundedInAnyOrder) {
  // Requests of two cores for the same 8,000 cycles, one core simulated first: 2 x 600 lines of 8 cycles.
  Dram dram(machine_of(1, 16));
  std::mt19937_64 random(1);
  Cycles last = 0;
  for (int core = 0; core < 2; ++core) {
    for (int i = 0; i < 600; ++i) last = std::max(last, dram.read(random() % 64, 100'000 + random() % 8000));
  }
  EXPECT_GE(last, 100'000u + 50'000 + 1200 * 8);
}

TEST(Dram, ClearStartsAnew) {
  Dram dram(machine_of());
  const Cycles first = dram.read(0, 10);
  dram.read(1, 10);
  dram.clear();
  EXPECT_EQ(dram.statistics.reads, 0u);
  EXPECT_EQ(dram.read(0, 10), first);
}

TEST(Calendar, GivesTheFirstFreeSlot) {
  Calendar calendar(10, 10'000);
  EXPECT_EQ(calendar.reserve(100), 100u);
  EXPECT_EQ(calendar.reserve(100), 110u);
  EXPECT_EQ(calendar.reserve(105), 120u);
  EXPECT_EQ(calendar.reserve(135), 135u);  // within a free slot: at once
  EXPECT_EQ(calendar.reserve(90), 90u);    // before all of them
  EXPECT_EQ(calendar.reserve(90), 140u);   // next free
}

TEST(Calendar, EachSlotIsGivenOnce) {
  std::mt19937_64 random(2);
  Calendar calendar(7, 100'000);
  std::set<Cycles> slots;
  Cycles now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += random() % 12;
    const Cycles at = now + random() % 1000;  // out of order by 1,000
    const Cycles start = calendar.reserve(at);
    EXPECT_GE(start, at);
    EXPECT_TRUE(slots.insert(start / 7).second);
  }
}

TEST(Calendar, WhatIsForgottenIsFree) {
  Calendar calendar(10, 1000);
  for (Cycles at = 1'000'000; at < 1'005'000; at += 640) calendar.reserve(at);
  EXPECT_EQ(calendar.reserve(0), 0u);
  EXPECT_EQ(calendar.reserve(0), 0u);
}

TEST(BusyPeriod, IsJoinedAtItsEnd) {
  BusyPeriod busy;
  EXPECT_EQ(busy.start(100), 100u);
  busy.occupy(100, 50);
  EXPECT_EQ(busy.start(120), 150u);
  busy.occupy(120, 50);
  EXPECT_EQ(busy.start(199), 200u);
  EXPECT_EQ(busy.start(200), 200u);
  EXPECT_EQ(busy.start(60), 60u);  // before it began
  busy.occupy(60, 50);             // and reaches into it, which others pay for
  EXPECT_EQ(busy.start(70), 210u);
  busy.occupy(500, 10);
  EXPECT_EQ(busy.start(150), 150u);
}

}  // namespace
}  // namespace annex::sim
