// Under memory pressure what is dirty goes back at once, whatever ANNEX_PURGE_DELAY says.
//
// The pressure is real, and the whole system's (/proc/pressure/memory): processes in a memory cgroup of 16 MiB read a
// file of 32 MiB again and again, so that most of their time goes into reclaim. Skipped where that can't be had, as it
// takes the right to make a cgroup.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/own_memory.h"
#include "common/scenario.h"
#include "stress/harness.h"
#include "stress/waiting.h"

using namespace annex_test;

namespace {

constexpr std::size_t kFreed = 64 * kMiB;
constexpr std::size_t kFileBytes = 32 * kMiB;
constexpr const char* kLimit = "16777216";  // half of that
constexpr int kReaders = 3;
constexpr long kEnoughMs = 200;  // of a second: twice what the purger takes for pressure

bool write_to(const std::string& path, const char* text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  close(file);
  return written;
}

// How long tasks of this system have been stalled for memory so far, in milliseconds; < 0: it does not say.
long stalled_ms() {
  char text[256] = "";
  const int file = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  const char* const total = length > 0 ? strstr(text, "total=") : nullptr;
  return total == nullptr ? -1 : strtol(total + 6, nullptr, 10) / 1000;
}

class Pressure : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = provoke();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  void TearDown() override {
    for (const pid_t reader : readers_) kill(reader, SIGKILL);
    for (const pid_t reader : readers_) waitpid(reader, nullptr, 0);
    if (file_ >= 0) close(file_);
    // The kernel may still be taking the readers out of it.
    for (int tries = 0; !cgroup_.empty() && rmdir(cgroup_.c_str()) != 0 && tries < 100; ++tries) wait_50_ms();
  }

 private:
  // What is missing for it; empty: there is memory pressure now.
  std::string provoke() {
    if (stalled_ms() < 0) return "/proc/pressure/memory can't be read";
    if (!make_cgroup()) return "no memory cgroup can be made: " + std::string(strerror(errno));
    if (!make_file()) return "no file on a disk in the working directory";
    for (int i = 0; i < kReaders; ++i) readers_.push_back(start([this] { read_for_ever(); }));
    for (int tries = 0; tries < 5; ++tries) {
      const long before = stalled_ms();
      for (int i = 0; i < 20; ++i) wait_50_ms();
      if (stalled_ms() - before >= kEnoughMs) return "";
    }
    return "the kernel counts hardly a stall: in all, ms: " + std::to_string(stalled_ms());
  }

  // Version 1 or 2, where the system has the controller.
  bool make_cgroup() {
    const std::string name = "/annex-test-" + std::to_string(getpid());
    for (const auto& [root, limit] :
         {std::pair("/sys/fs/cgroup/memory", "/memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "/memory.high")}) {
      if (mkdir((root + name).c_str(), 0700) != 0) continue;
      cgroup_ = root + name;
      if (write_to(cgroup_ + limit, kLimit)) return true;
      rmdir(cgroup_.c_str());
      cgroup_.clear();
    }
    return false;
  }

  // Written by a process in the cgroup, to which its pages are counted. In tmpfs they could not be reclaimed.
  bool make_file() {
    char path[] = "pressure-XXXXXX";
    file_ = mkostemp(path, O_CLOEXEC);
    if (file_ < 0) return false;
    unlink(path);
    struct statfs system;
    if (fstatfs(file_, &system) != 0 || system.f_type == 0x01021994) return false;
    int status = 0;
    waitpid(start([this] {
              static char piece[64 * kKiB];
              for (std::size_t done = 0; done < kFileBytes; done += sizeof piece) {
                if (write(file_, piece, sizeof piece) != sizeof piece) _exit(1);
              }
              _exit(fsync(file_) == 0 ? 0 : 1);
            }),
            &status, 0);
    return status == 0;
  }

  // A process in the cgroup, which ends with this one at the latest. It does not allocate.
  template <class Body>
  pid_t start(Body body) {
    const std::string processes = cgroup_ + "/cgroup.procs";
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!write_to(processes, "0")) _exit(1);
    body();
    _exit(0);
  }

  // By mapping: a page that is missed soon after it was reclaimed counts as a stall, too.
  void read_for_ever() const {
    void* const memory = mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) return;
    const volatile char* const bytes = static_cast<const char*>(memory);
    for (;;) {
      for (std::size_t at = 0; at < kFileBytes; at += 4096) static_cast<void>(bytes[at]);
    }
  }

  std::string cgroup_;
  int file_ = -1;
  std::vector<pid_t> readers_;
};

}  // namespace

ANNEX_SCENARIO(freed_under_pressure) {
  // One thread frees 64 MiB; then neither does anything.
  static std::atomic<bool> freed{false};
  static std::atomic<bool> done{false};
  Thread other([] {
    const std::size_t bytes = std::strtoull(scenario_argument(), nullptr, 10);
    const std::size_t count = kFreed / bytes;
    OwnMemory own;
    void** const blocks = static_cast<void**>(own.allocate(count * sizeof(void*)));
    for (std::size_t i = 0; i < count; ++i) {
      blocks[i] = opaque(annex_malloc(bytes));
      DEMAND(blocks[i] != nullptr);
      std::memset(blocks[i], 1, bytes);
    }
    DEMAND(resident_bytes() >= kFreed);
    for (std::size_t i = 0; i < count; ++i) annex_free(blocks[i]);
    own.deallocate(blocks, count * sizeof(void*));
    freed = true;
    while (!done) wait_50_ms();
  });
  while (!freed) wait_50_ms();
  const bool fell = falls_below(kFreed / 3);
  done = true;
  return fell ? 0 : 1;
}

TEST_F(Pressure, NothingWaitsForTheDelay) {
  for (const char* bytes : {"1500", "4000000"}) {
    Launch launch;
    launch.scenario = "freed_under_pressure";
    launch.argument = bytes;
    launch.environment = {{"ANNEX_PURGE_DELAY", "60000"}, {"ANNEX_BACKGROUND", "auto"}};
    const long before = stalled_ms();
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << bytes << "-byte blocks, tasks stalled for " << stalled_ms() - before
                                    << " ms meanwhile: " << describe(outcome);
  }
}
