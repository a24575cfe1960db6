// System calls on a simulated machine: what each kind takes, who is interrupted, who waits for the mmap lock.
#include "guest/system_calls.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>

namespace annex::sim {
namespace {

constexpr uint64_t kPage = 4096;
constexpr Address kBase = Address{0x7f} << 36;

// Costs that can be told apart in their sum, at 1 cycle a nanosecond.
Machine machine_with_costs() {
  Machine machine;
  machine.cores = 4;
  machine.ghz = 1;
  machine.llc.bytes *= 4;
  SystemParameters& s = machine.system;
  s.call_us = 0.1;
  s.clock_us = 0.02;
  s.futex_again_us = 0.2;
  s.futex_wait_us = 0.5;
  s.futex_wake_us = 0.15;
  s.futex_woken_us = 0.4;
  s.wake_us = 2;
  s.mmap_us = 1;
  s.munmap_us = 1.4;
  s.mremap_us = 3;
  s.mprotect_us = 0.65;
  s.madvise_us = 0.35;
  s.page_us = 0.15;
  s.free_page_us = 0.09;
  s.shoot_down_us = 1.5;
  s.shoot_down_core_us = 0.3;
  s.interrupt_us = 0.5;
  return machine;
}

class SystemCallsTest : public testing::Test {
 protected:
  // What the thread's call takes, of which the host says `result`.
  Cycles call(GuestThread& thread, int64_t number, const Arguments& arguments = {}, int64_t result = 0) {
    const Cycles before = at(thread);
    answer_ = calls_.before(thread, number, arguments);
    calls_.after(thread, number, answer_.value_or(result));
    return at(thread) - before;
  }
  Cycles at(GuestThread& thread) {
    simulation_.settle(thread);
    return Simulation::now(thread);
  }
  Cycles map(GuestThread& thread, Address address, uint64_t pages) {
    return call(thread, SYS_mmap,
                {0, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0},
                static_cast<int64_t>(address));
  }
  void touch(Address address, uint64_t pages) {
    for (uint64_t i = 0; i < pages; ++i) {
      simulation_.memory().pages().touch(address + i * kPage, 0, Origin::kProgram);
    }
  }
  // So many more threads, each on a core of its own, that run by now.
  void start_others(unsigned count) {
    for (unsigned i = 0; i < count; ++i) simulation_.start_thread();
    simulation_.spend(first_, 3000);
  }
  uint64_t counted(const char* what) { return calls_.to_json()[what].get<uint64_t>(); }

  const Machine machine_ = machine_with_costs();
  Simulation simulation_{machine_, 1, false, {}};
  SystemCalls calls_{simulation_, 5 * kPage};  // between the program and its heap
  GuestThread& first_ = simulation_.start_thread();
  std::optional<int64_t> answer_;  // of the last call, if it was not the host's to do
};

TEST_F(SystemCallsTest, EachKindHasItsCost) {
  EXPECT_EQ(call(first_, SYS_getppid), 100u);
  EXPECT_EQ(call(first_, SYS_read, {~uint64_t{0}}), 100u);
  struct timespec time = {};
  const auto where = reinterpret_cast<uint64_t>(&time);
  EXPECT_EQ(call(first_, SYS_clock_gettime, {CLOCK_MONOTONIC, where}), 20u);
  EXPECT_EQ(call(first_, SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID, where}), 100u);
  EXPECT_EQ(map(first_, kBase, 16), 1000u);
  EXPECT_EQ(call(first_, SYS_mprotect, {kBase, 16 * kPage, PROT_READ}), 650u);
  EXPECT_EQ(call(first_, SYS_madvise, {kBase, 16 * kPage, MADV_DONTNEED}), 350u);
  EXPECT_EQ(call(first_, SYS_mremap, {kBase, 16 * kPage, 32 * kPage}, static_cast<int64_t>(kBase)), 3000u);
  EXPECT_EQ(call(first_, SYS_munmap, {kBase, 32 * kPage}), 1400u);
  EXPECT_EQ(call(first_, SYS_munmap, {kBase + 1, 32 * kPage}, -22), 100u);  // refused
  const nlohmann::json kinds = calls_.to_json()["by_kind"];
  EXPECT_EQ(kinds["plain"]["count"], 4);
  EXPECT_EQ(kinds["munmap"]["count"], 1);
  EXPECT_EQ(kinds["munmap"]["cycles"], 1400);
}

// How large a host's own mask is depends on how many CPUs it could have; the program searches what it is told of.
TEST_F(SystemCallsTest, TheMaskOfCpusIsTheMachines) {
  std::array<unsigned char, 128> mask;
  mask.fill(0xff);
  const auto where = reinterpret_cast<uint64_t>(mask.data());
  call(first_, SYS_sched_getaffinity, {0, mask.size(), where});
  EXPECT_EQ(answer_, 8);
  EXPECT_EQ(mask[0], 0xf);
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(mask[i], 0) << i;
  EXPECT_EQ(mask[8], 0xff);
  call(first_, SYS_sched_getaffinity, {0, 8, where});
  EXPECT_EQ(answer_, 8);
  call(first_, SYS_sched_getaffinity, {0, 4, where});
  EXPECT_EQ(answer_, -EINVAL);
  call(first_, SYS_sched_getaffinity, {1u << 30, 8, where}, -ESRCH);  // no process has that number
  EXPECT_EQ(answer_, std::nullopt);
}

// The host's heap begins at kBase, the program's 5 pages higher; and the host has never heard of that.
TEST_F(SystemCallsTest, TheHeapBeginsBehindAGap) {
  constexpr Address kHeap = kBase + 5 * kPage;
  const auto brk = [&](Address to, Address host_says) {
    answer_ = calls_.before(first_, SYS_brk, {to});
    const int64_t result = calls_.heap_begins(answer_.value_or(static_cast<int64_t>(host_says)));
    calls_.after(first_, SYS_brk, result);
    return static_cast<Address>(result);
  };
  EXPECT_EQ(brk(0, kBase), kHeap);
  EXPECT_FALSE(answer_);
  for (const Address below : {Address{0}, kBase, kBase + kPage, kHeap - 1}) {
    EXPECT_EQ(brk(below, kBase), kHeap);
    EXPECT_TRUE(answer_) << "the host would say where its break is";
  }
  EXPECT_EQ(brk(kHeap + 4 * kPage, kHeap + 4 * kPage), kHeap + 4 * kPage);
  EXPECT_FALSE(answer_);
  touch(kHeap, 4);
  EXPECT_EQ(simulation_.memory().pages().resident_bytes(), 4 * kPage);
  EXPECT_EQ(brk(0, 0), kHeap + 4 * kPage);
  EXPECT_EQ(brk(kHeap, kHeap), kHeap);
  EXPECT_EQ(simulation_.memory().pages().resident_bytes(), 0u);
}

TEST_F(SystemCallsTest, PagesGivenBackCost) {
  map(first_, kBase, 16);
  touch(kBase, 10);
  EXPECT_EQ(call(first_, SYS_madvise, {kBase, 4 * kPage, MADV_DONTNEED}), 350u + 4 * 150);
  EXPECT_EQ(call(first_, SYS_munmap, {kBase, 16 * kPage}), 1400u + 6 * 150);
  EXPECT_EQ(counted("shoot_downs"), 0u);  // the process has one thread
}

TEST_F(SystemCallsTest, FreedPagesStayResident) {
  map(first_, kBase, 16);
  touch(kBase, 10);
  EXPECT_EQ(call(first_, SYS_madvise, {kBase, 16 * kPage, MADV_FREE}), 350u + 10 * 90);
  EXPECT_EQ(simulation_.memory().pages().resident_bytes(), 10 * kPage);
}

TEST_F(SystemCallsTest, AShootDownInterruptsCoresThatRunThreads) {
  map(first_, kBase, 16);
  touch(kBase, 1);
  start_others(2);
  EXPECT_EQ(call(first_, SYS_munmap, {kBase, kPage}), 1400u + 150 + 1500 + 300);
  EXPECT_EQ(counted("shoot_downs"), 1u);
  EXPECT_EQ(counted("interrupts"), 2u);
  nlohmann::json results;
  simulation_.describe(results);
  unsigned interrupted = 0;
  for (const auto& core : results["cores"]) interrupted += core["cycles"] == 500 ? 1 : 0;
  EXPECT_EQ(interrupted, 2u);
  EXPECT_EQ(results["cores"][3]["cycles"], 0);  // it has no thread
}

TEST_F(SystemCallsTest, NobodyIsInterruptedWhereNoTlbCanKnow) {
  map(first_, kBase, 16);
  touch(kBase, 1);
  start_others(2);
  call(first_, SYS_mprotect, {kBase, kPage, PROT_READ | PROT_WRITE});    // more rights, or the same
  call(first_, SYS_munmap, {kBase + kPage, kPage});                      // never touched
  call(first_, SYS_madvise, {kBase + 2 * kPage, kPage, MADV_DONTNEED});  // the same
  EXPECT_EQ(counted("interrupts"), 0u);
  call(first_, SYS_mprotect, {kBase, kPage, PROT_READ});
  EXPECT_EQ(counted("interrupts"), 2u);
}

TEST_F(SystemCallsTest, AThreadThatHasNotStartedIsNotInterrupted) {
  map(first_, kBase, 16);
  touch(kBase, 1);
  simulation_.settle(first_);
  simulation_.start_thread();
  call(first_, SYS_munmap, {kBase, kPage});
  EXPECT_EQ(counted("interrupts"), 0u);
}

TEST_F(SystemCallsTest, CallsWaitForTheMmapLock) {
  MmapLock& lock = simulation_.memory().pages().lock;
  const Cycles now = at(first_);
  lock.write(now, 700);  // somebody else's
  EXPECT_EQ(map(first_, kBase, 16), 700u + 1000);
  EXPECT_EQ(call(first_, SYS_madvise, {kBase, kPage, MADV_DONTNEED}), 350u);
  lock.fault(at(first_), 250);
  EXPECT_EQ(call(first_, SYS_madvise, {kBase, kPage, MADV_DONTNEED}), 350u);  // beside a page fault
  lock.fault(at(first_), 250);
  EXPECT_EQ(call(first_, SYS_munmap, {kBase, 16 * kPage}), 250u + 1400);
}

TEST_F(SystemCallsTest, FutexesCostTheWaiterAndTheWaker) {
  alignas(4) uint32_t word = 1;
  const auto where = reinterpret_cast<uint64_t>(&word);
  const Arguments wake = {where, FUTEX_WAKE_PRIVATE, 1};
  EXPECT_EQ(call(first_, SYS_futex, {where, FUTEX_WAIT_PRIVATE, 2}), 200u);  // it is not 2
  EXPECT_EQ(call(first_, SYS_futex, wake), 150u);                            // nobody waits

  GuestThread& second = simulation_.start_thread();
  Cycles woken_by = 0;
  std::thread waker([&] {
    const Cycles started = at(second);
    EXPECT_EQ(call(second, SYS_futex, wake), 150u + 400);
    woken_by = started + 150 + 400;
    simulation_.end_thread(second);
  });
  const Cycles before = at(first_);
  EXPECT_EQ(calls_.before(first_, SYS_futex, {where, FUTEX_WAIT_PRIVATE, 1}), 0);
  calls_.after(first_, SYS_futex, 0);
  waker.join();
  EXPECT_GT(woken_by, before);
  EXPECT_EQ(at(first_), woken_by + 2000);
  EXPECT_EQ(calls_.to_json()["by_kind"]["futex_wait"]["cycles"], 500);
}

TEST_F(SystemCallsTest, WaitsThatAreOverAreAnsweredHere) {
  const struct timespec time = {.tv_sec = 0, .tv_nsec = 3000};
  const auto how_long = reinterpret_cast<uint64_t>(&time);
  EXPECT_GE(call(first_, SYS_nanosleep, {how_long}), 100u + 3000);
  EXPECT_EQ(answer_, 0);
  uint32_t word = 1;
  call(first_, SYS_futex, {reinterpret_cast<uint64_t>(&word), FUTEX_WAIT_PRIVATE, 1, how_long});
  EXPECT_EQ(answer_, -ETIMEDOUT);
  call(first_, SYS_nanosleep, {8});
  EXPECT_EQ(answer_, -EFAULT);
}

}  // namespace
}  // namespace annex::sim
