// The lock excludes, also where threads outnumber CPUs.
#include "os/lock.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace annex::os
