// The thread that forks is let into the locks that it holds, and nobody else is.
#include "os/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "os/forking.h"

namespace annex::os {
namespace {

TEST(Fork, AdmitsTheThreadThatForksAlone) {
  constexpr int kTimes = 20000;
  Lock lock;
  long count = 0;  // not atomic: who is let in beside the thread that forks may lose some
  ASSERT_TRUE(fork.begin());
  fork.hold(lock);
  std::vector<std::thread> others;
  for (int t = 0; t < 3; ++t) {
    others.emplace_back([&] {
      EXPECT_FALSE(this_thread_forks());
      for (int i = 0; i < kTimes; ++i) {
        Guard guard(lock);
        ++count;
      }
    });
  }
  EXPECT_TRUE(this_thread_forks());
  for (int i = 0; i < kTimes; ++i) {
    Guard outer(lock);
    Guard inner(lock);
    ++count;
  }
  EXPECT_EQ(count, kTimes);  // the others are all outside
  fork.end_in_parent();
  EXPECT_FALSE(this_thread_forks());
  for (std::thread& other : others) other.join();
  EXPECT_EQ(count, 4 * kTimes);
}

TEST(Fork, LetsGoOfNothingButWhatItHolds) {
  Lock others;
  Lock free;
  ASSERT_TRUE(fork.begin());
  {
    Guard guard(free);  // a lock that no fork holds excludes as ever, the thread that forks too
  }
  std::thread([&] { Guard guard(free); }).join();
  std::atomic<bool> taken{false};
  std::atomic<bool> let_go{false};
  std::atomic<bool> entered{false};
  std::thread holder([&] {
    Guard guard(others);
    taken = true;
    while (!let_go) std::this_thread::yield();
    EXPECT_FALSE(entered);
  });
  while (!taken) std::this_thread::yield();
  fork.end_in_parent();
  std::thread late([&] {
    Guard guard(others);
    entered = true;
  });
  let_go = true;
  holder.join();
  late.join();
}

TEST(Fork, IsOneAtATime) {
  Lock lock;
  int inside = 0;
  long forks = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        ASSERT_TRUE(fork.begin());
        EXPECT_EQ(++inside, 1);
        fork.hold(lock);
        ++forks;
        --inside;
        fork.end_in_parent();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forks, 4 * 2000);
}

TEST(Fork, WithinAHandlerOfAFork) {
  Lock lock;
  std::atomic<bool> over{false};
  ASSERT_TRUE(fork.begin());
  fork.hold(lock);
  std::thread other([&] {
    Guard guard(lock);
    EXPECT_TRUE(over);
  });
  EXPECT_FALSE(fork.begin());
  fork.end_in_parent();  // the inner one: everything stays as it is
  EXPECT_TRUE(this_thread_forks());
  over = true;
  fork.end_in_parent();
  other.join();
}

TEST(Fork, LeavesTheChildEverythingFree) {
  Lock lock;
  std::atomic<bool> waits{false};
  ASSERT_TRUE(fork.begin());
  fork.hold(lock);
  std::thread other([&] {
    waits = true;
    Guard guard(lock);
  });
  while (!waits) std::this_thread::yield();
  const pid_t child = ::fork();  // Annex's own handlers find this fork going on
  if (child == 0) {
    alarm(60);
    if (!this_thread_forks()) _exit(1);
    { Guard admitted(lock); }
    fork.end_in_child();
    if (this_thread_forks()) _exit(2);
    { Guard guard(lock); }
    if (!fork.begin()) _exit(3);  // and it may fork in turn
    fork.hold(lock);
    fork.end_in_parent();
    { Guard guard(lock); }
    _exit(0);
  }
  fork.end_in_parent();
  other.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace annex::os
