// The helper thread runs, ends, and can be started again; libc never notices it.
#include "os/helper_thread.h"

#include <gtest/gtest.h>
#include <sys/single_threaded.h>

#include <atomic>
#include <ctime>

namespace annex::os {
namespace {

constinit HelperThread helper;
std::atomic<int> runs{0};

void* count(void* counter) {
  helper_sleep_ms(1);
  static_cast<std::atomic<int>*>(counter)->fetch_add(1);
  return nullptr;
}

TEST(HelperThread, RunsAndEndsEachTime) {
  const bool single = __libc_single_threaded;
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(helper.start(count, &runs));
    while (runs.load() < i) {
      const struct timespec pause = {0, 100000};
      nanosleep(&pause, nullptr);
    }
  }
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(__libc_single_threaded, single);
#else
  (void)single;
#endif
}

}  // namespace
}  // namespace annex::os
