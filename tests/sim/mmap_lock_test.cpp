// The lock of a process's memory map: who waits for whom, in simulated time.
#include "machine/mmap_lock.h"

#include <gtest/gtest.h>

namespace annex::sim {
namespace {

TEST(MmapLock, WritersGoOneAfterTheOther) {
  MmapLock lock("read-write");
  EXPECT_EQ(lock.write(100, 50), 100u);
  EXPECT_EQ(lock.write(110, 50), 150u);
  EXPECT_EQ(lock.write(120, 50), 200u);
  EXPECT_EQ(lock.write(1000, 50), 1000u);
  EXPECT_EQ(lock.statistics.writes, 4u);
  EXPECT_EQ(lock.statistics.waits, 2u);
  EXPECT_EQ(lock.statistics.wait_cycles, 40u + 80u);
}

TEST(MmapLock, ReadersGoSideBySide) {
  MmapLock lock("read-write");
  EXPECT_EQ(lock.read(100, 50), 100u);
  EXPECT_EQ(lock.fault(110, 50), 110u);
  EXPECT_EQ(lock.read(120, 10), 120u);
  EXPECT_EQ(lock.write(130, 50), 160u);  // after the last of them
  EXPECT_EQ(lock.statistics.reads, 2u);
  EXPECT_EQ(lock.statistics.faults, 1u);
}

TEST(MmapLock, WhoComesWhileAWriterWaitsGoesBehindIt) {
  MmapLock lock("read-write");
  lock.read(100, 100);
  EXPECT_EQ(lock.write(110, 50), 200u);
  EXPECT_EQ(lock.fault(120, 10), 250u);
  EXPECT_EQ(lock.fault(130, 20), 250u);
  EXPECT_EQ(lock.write(140, 10), 270u);
}

TEST(MmapLock, AWriterMayKeepItBesideReaders) {
  MmapLock lock("read-write");
  EXPECT_EQ(lock.write(100, 50, 200), 100u);
  EXPECT_EQ(lock.fault(110, 10), 150u);
  EXPECT_EQ(lock.write(120, 10), 350u);
}

TEST(MmapLock, WhatBeganLaterHoldsNobodyUp) {
  MmapLock lock("read-write");
  lock.write(1000, 500);
  EXPECT_EQ(lock.write(900, 20), 900u);  // of a core that is behind
  EXPECT_EQ(lock.fault(950, 20), 950u);
  EXPECT_EQ(lock.fault(1001, 20), 1500u);
}

TEST(MmapLock, LocksOfRegionsLeaveFaultsAlone) {
  MmapLock lock("per-vma");
  lock.write(100, 50);
  EXPECT_EQ(lock.fault(110, 50), 110u);
  EXPECT_EQ(lock.read(110, 50), 150u);
  EXPECT_EQ(lock.write(120, 50), 200u);
  EXPECT_EQ(lock.statistics.faults, 0u);
}

TEST(MmapLock, WithoutOneNobodyWaits) {
  MmapLock lock("none");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lock.write(100, 50, 50), 100u);
    EXPECT_EQ(lock.read(100, 50), 100u);
    EXPECT_EQ(lock.fault(100, 50), 100u);
  }
  EXPECT_EQ(lock.statistics.waits, 0u);
}

}  // namespace
}  // namespace annex::sim
