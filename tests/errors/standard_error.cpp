// What the library says goes to standard error, and into no other file that happens to be descriptor 2.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "common/scenario.h"
#include "errors/double_free.h"

using namespace annex_test;

namespace {

// A file of the test's own, gone afterwards.
class File {
 public:
  File() {
    const int file = mkstemp(path_);
    EXPECT_EQ(write(file, "data\n", 5), 5);
    close(file);
  }
  ~File() { unlink(path_); }
  const char* path() const { return path_; }
  std::string content() const {
    char buffer[4096];
    const int file = open(path_, O_RDONLY);
    const ssize_t length = read(file, buffer, sizeof buffer);
    close(file);
    return std::string(buffer, length > 0 ? static_cast<std::size_t>(length) : 0);
  }

 private:
  char path_[32] = "/tmp/annex-errors-XXXXXX";
};

Outcome run(const std::string& scenario, const std::string& argument, const char* stats) {
  Launch launch;
  launch.scenario = scenario;
  launch.argument = argument;
  launch.environment = {{"ANNEX_STATS", stats}};
  return run_scenario(launch);
}

// Does what the other process is to do once descriptor 2 is what it is to be.
int err_or_exit() {
  const char* stats = getenv("ANNEX_STATS");
  if (strcmp(stats, "off") == 0) free_twice();
  return 0;
}

void expect_ended(const Outcome& outcome, const char* stats) {
  if (strcmp(stats, "off") == 0) {
    EXPECT_EQ(outcome.signal, SIGABRT) << describe(outcome);
  } else {
    EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  }
}

}  // namespace

ANNEX_SCENARIO(data_is_descriptor_2) {
  close(STDERR_FILENO);
  SCENARIO_CHECK(open(scenario_argument(), O_RDWR) == STDERR_FILENO);
  return err_or_exit();
}
TEST(StandardError, NotIntoData) {
  for (const char* stats : {"off", "text", "json"}) {
    const File file;
    expect_ended(run("data_is_descriptor_2", file.path(), stats), stats);
    EXPECT_EQ(file.content(), "data\n") << stats;
  }
}

ANNEX_SCENARIO(connection_is_descriptor_2) {
  int ends[2];
  SCENARIO_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pid_t child = fork();
  SCENARIO_CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    return err_or_exit();
  }
  close(ends[1]);
  char byte;
  return read(ends[0], &byte, 1) == 0 ? 0 : 1;
}
TEST(StandardError, NotIntoAConnection) {
  for (const char* stats : {"off", "text"}) {
    const Outcome outcome = run("connection_is_descriptor_2", "", stats);
    EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  }
}

ANNEX_SCENARIO(closed_at_the_start) {
  close(STDERR_FILENO);
  execl("/proc/self/exe", "exe", "--scenario=data_is_descriptor_2", scenario_argument(), nullptr);
  return 1;
}
TEST(StandardError, ClosedAtTheStart) {
  if (getenv("ANNEX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "an emulator starts no program by itself";
  for (const char* stats : {"off", "text"}) {
    const File file;
    expect_ended(run("closed_at_the_start", file.path(), stats), stats);
    EXPECT_EQ(file.content(), "data\n") << stats;
  }
}

ANNEX_SCENARIO(turned_to_a_log) {
  const int log = open(scenario_argument(), O_WRONLY | O_APPEND);
  SCENARIO_CHECK(dup2(log, STDERR_FILENO) == STDERR_FILENO);
  return err_or_exit();
}
TEST(StandardError, IntoALog) {
  for (const char* stats : {"off", "text"}) {
    const File file;
    expect_ended(run("turned_to_a_log", file.path(), stats), stats);
    EXPECT_EQ(file.content().rfind("data\nannex", 0), 0u) << file.content();
  }
}

ANNEX_SCENARIO(turned_to_a_pipe) {
  int ends[2];
  SCENARIO_CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  SCENARIO_CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    return err_or_exit();
  }
  close(ends[1]);
  char bytes[5];
  return read(ends[0], bytes, sizeof bytes) == 5 && memcmp(bytes, "annex", 5) == 0 ? 0 : 1;
}
TEST(StandardError, IntoAPipe) {
  for (const char* stats : {"off", "text"}) {
    const Outcome outcome = run("turned_to_a_pipe", "", stats);
    EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  }
}

// A filter of system calls that allows no look at the descriptor.
ANNEX_SCENARIO(may_not_look) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstat, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  SCENARIO_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  SCENARIO_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
  return err_or_exit();
}
TEST(StandardError, UnderAFilter) {
  if (getenv("ANNEX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "an emulator has no system call filters";
  for (const char* stats : {"off", "text"}) {
    const Outcome outcome = run("may_not_look", "", stats);
    expect_ended(outcome, stats);
    EXPECT_EQ(outcome.err.rfind("annex", 0), 0u) << describe(outcome);
  }
}
