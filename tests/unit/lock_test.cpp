// The lock excludes, also where threads outnumber CPUs.
#include "os/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace annex::os {
namespace {

TEST(Lock, Excludes) {
  Lock lock;
  long count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        Guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 16 * 5000);
}

TEST(Lock, IsFreeAfterFork) {
  Lock lock;
  lock.lock();
  lock.reset_after_fork();
  lock.lock();
  std::atomic<bool> entered{false};
  std::thread other([&] {
    Guard guard(lock);
    entered = true;
  });
  EXPECT_FALSE(entered);
  lock.unlock();
  other.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace annex::os
