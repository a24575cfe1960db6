// Helper threads: made, ended, held off, and threads of their own in all that a program can see of them.
#include "os/helper_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "os/message.h"
#include "os/privileges.h"

namespace annex::os {
namespace {

constinit HelperThread helper;
std::atomic<int> runs{0};
std::atomic<int> ended{0};

void wait_a_little() {
  const struct timespec pause = {0, 100000};
  nanosleep(&pause, nullptr);
}

void count(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

void run_until_told(void*) {
  ++runs;
  while (!helper.must_end()) helper.sleep_ms(1000);
  ++ended;
}

// The one before may take a moment until it is gone.
void start(HelperThread::Body* body, void* argument) {
  while (helper.start("annex-test", body, argument) != HelperThread::Start::kMade) wait_a_little();
}

class HelperThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    allow_helpers();
    runs = ended = 0;
  }
  void TearDown() override { NoHelpers joined; }
};

TEST_F(HelperThreadTest, RunsAndEndsEachTime) {
  for (int i = 1; i <= 20; ++i) {
    start(count, &runs);
    while (runs.load() < i) wait_a_little();
  }
}

TEST_F(HelperThreadTest, ThereIsNoneWhileTheyAreHeldOff) {
  start(run_until_told, nullptr);
  while (runs == 0) wait_a_little();
  {
    errno = 77;
    NoHelpers none;
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(helper.start("annex-test", run_until_told, nullptr), HelperThread::Start::kNotNow);
    NoHelpers another;
    EXPECT_EQ(errno, 77);
  }
  start(run_until_told, nullptr);
  while (runs == 1) wait_a_little();
}

TEST_F(HelperThreadTest, OneAtATime) {
  start(run_until_told, nullptr);
  EXPECT_EQ(helper.start("annex-test", run_until_told, nullptr), HelperThread::Start::kNotNow);
}

TEST_F(HelperThreadTest, AForkedChildHasNone) {
  start(run_until_told, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    forget_helpers_after_fork();
    NoHelpers none;  // would wait for ever for one that is not there
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Alone in a function: vfork returns twice, and no variable of the caller's may be in a register then.
[[gnu::noinline]] pid_t vfork_and_start() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t child = vfork();
#pragma GCC diagnostic pop
  if (child == 0) _exit(helper.start("annex-test", run_until_told, nullptr) == HelperThread::Start::kFailed ? 0 : 1);
  return child;
}

TEST_F(HelperThreadTest, NoneInAChildThatSharesMemory) {
  int status = 1;
  const pid_t child = vfork_and_start();
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  start(run_until_told, nullptr);
}

// --- a fatal error in one -------------------------------------------------------------------------------------------

pid_t program_thread = 0;

void tell_where(int) {
  static constexpr char kThere[] = "in its own thread\n";
  static constexpr char kElsewhere[] = "in another thread\n";
  const bool there = gettid() != program_thread;
  if (write(2, there ? kThere : kElsewhere, sizeof kThere - 1) < 0) _exit(1);
  while (there) pause();  // so that the program's thread can look at its errno
}

void find_error(void*) {
  errno = 99;
  fatal("test of a fatal error");
}

void meet_error() {
  program_thread = gettid();
  allow_helpers();
  signal(SIGABRT, tell_where);
  errno = 77;
  start(find_error, nullptr);
  for (int i = 0; i < 1000; ++i) wait_a_little();
  _exit(errno == 77 ? 42 : 43);
}

TEST_F(HelperThreadTest, AFatalErrorTouchesNoOtherThread) {
  EXPECT_EXIT(meet_error(), ::testing::ExitedWithCode(42), "annex: test of a fatal error in .*\nin its own thread\n");
}

// --- privileges -----------------------------------------------------------------------------------------------------

TEST(Privileges, OfOneThreadAreThoseOfAnother) {
  const Privileges mine = privileges_of(gettid());
  EXPECT_TRUE(mine.known);
  EXPECT_EQ(mine, privileges_of(getpid()));
  EXPECT_FALSE(privileges_of(0).known);
}

TEST(Privileges, AChangeShows) {
  const auto change = [] {
    const Privileges before = privileges_of(gettid());
    if (setgid(65534) != 0) _exit(2);
    const Privileges after = privileges_of(gettid());
    _exit(before.rest != after.rest && before.filters == after.filters ? 0 : 1);
  };
  if (geteuid() != 0) {
    const char* all = getenv("ANNEX_REQUIRE_ALL");
    if (all != nullptr && *all == '1') FAIL() << "needs root, and ANNEX_REQUIRE_ALL is set";
    GTEST_SKIP() << "needs root";
  }
  EXPECT_EXIT(change(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace annex::os
