// Guards of large blocks: what they cost the process in mappings, and that what was one can be used again, however the
// kernel keeps them: as marks in page tables, as mappings of their own, or first so and then so.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "common/expect_success.h"
#include "hardened/misuse.h"

using namespace annex_test;

namespace {

constexpr unsigned kInstall = 102;  // MADV_GUARD_INSTALL, MADV_GUARD_REMOVE
constexpr unsigned kRemove = 103;

#define SKIP_WITHOUT_FILTERS() \
  if (getenv("ANNEX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "an emulator has no system call filters"

// From here on the kernel answers as one that does not know the marks (EINVAL), or a sandbox that does not (EPERM).
void refuse_marks(int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kInstall, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kRemove, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
  };
  const sock_fprog program = {std::size(filter), filter};
  SCENARIO_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  SCENARIO_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}
void refuse_marks_as_asked() {
  if (*scenario_argument() != '\0') refuse_marks(atoi(scenario_argument()));
}

bool kernel_marks() {
  void* const page = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool marks = madvise(page, 65536, kInstall) == 0;
  // QEMU's user mode says so of any advice: the kernel reads nothing from a page that is marked.
  int ends[2];
  SCENARIO_CHECK(pipe(ends) == 0);
  const bool unreadable = write(ends[1], page, 1) < 0;
  for (int end : ends) close(end);
  munmap(page, 65536);
  return marks && unreadable;
}

// Without allocating.
int mappings() {
  static char text[65536];
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  SCENARIO_CHECK(file >= 0);
  int lines = 0;
  for (ssize_t length; (length = read(file, text, sizeof text)) > 0;) {
    lines += static_cast<int>(std::count(text, text + length, '\n'));
  }
  close(file);
  return lines;
}
int most_mappings() {
  char text[32] = {};
  const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  SCENARIO_CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  return atoi(text);
}

// --- many of them ----------------------------------------------------------------------------------------------------

void* nothing(void*) { return nullptr; }

void expect_that_threads_start() {
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(&thread, nullptr, nothing, nullptr) == 0);
  SCENARIO_CHECK(pthread_join(thread, nullptr) == 0);
}

// Of as many bytes as there are between the guards, so that there is no canary, and too many to be zeroed: no memory is
// touched.
constexpr std::size_t kBytes = 3 * 65536;
char* blocks[40000];

}  // namespace

ANNEX_SCENARIO(many_guarded_blocks) {
  const bool marks = kernel_marks() && *scenario_argument() == '\0';
  refuse_marks_as_asked();
  const int before = mappings();
  for (char*& block : blocks) SCENARIO_CHECK((block = static_cast<char*>(opaque(malloc(kBytes)))) != nullptr);
  expect_that_threads_start();
  const int more = mappings() - before;
  // Where the kernel keeps mappings for them, those beside guards that lie next to each other are one.
  SCENARIO_CHECK(marks ? more < 100 : more > most_mappings() / 8 && more < most_mappings() / 2 + 100);
  // Those without guards are blocks as any.
  for (std::size_t i = 0; i < std::size(blocks); i += 100) std::memset(blocks[i], 1, kBytes);
  for (char* block : blocks) free(block);
  expect_that_threads_start();
  // What guards took that are gone, others may take.
  const int without = mappings();
  for (int i = 0; i < 2000; ++i) blocks[i] = static_cast<char*>(opaque(malloc(kBytes)));
  SCENARIO_CHECK(marks || mappings() - without > 1000);
  return 0;
}
TEST(Guards, ManyLeaveMappingsForThreads) { expect_success("many_guarded_blocks"); }
TEST(Guards, ManyLeaveMappingsForThreadsWhereTheyTakeSome) {
  SKIP_WITHOUT_FILTERS();
  for (const int error : {EINVAL, EPERM}) {
    Launch launch;
    launch.scenario = "many_guarded_blocks";
    launch.argument = std::to_string(error);
    launch.environment = {{"ANNEX_VERBOSE", "1"}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
    const auto said = outcome.err.find("annex: no mappings left for guards (vm.max_map_count)");
    EXPECT_NE(said, std::string::npos) << describe(outcome);
    EXPECT_EQ(outcome.err.find("no mappings left", said + 20), std::string::npos) << describe(outcome);
  }
}

// What the kernel grants is read at the start: later a filter may end the process for it.
ANNEX_SCENARIO(guards_and_no_files) {
  refuse_marks(EINVAL);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(filter), filter};
  SCENARIO_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
  for (int i = 0; i < 100; ++i) SCENARIO_CHECK(opaque(malloc(kBytes)) != nullptr);
  return 0;
}
TEST(Guards, OpenNoFileOnceTheProcessHasStarted) {
  SKIP_WITHOUT_FILTERS();
  expect_success("guards_and_no_files");
}

// --- used again ------------------------------------------------------------------------------------------------------

namespace {

// Blocks of all kinds come and go, each written to throughout: whatever was a guard is memory again when it is handed
// out. The limit on the heap takes those that wait from them.
void use_all_that_is_handed_out(unsigned random) {
  static void* held[64];
  for (int round = 0; round < 1500; ++round) {
    random = random * 1103515245 + 12345;
    void*& block = held[(random >> 8) % std::size(held)];
    const unsigned kind = (random >> 16) % 8;
    const std::size_t most = round % 16 == 0 ? 3u << 20 : round % 3 == 0 ? 400000 : 100000;
    const std::size_t bytes = 30000 + (random >> 4) % most;
    void* const old = block;
    if (kind == 0) {
      block = opaque(realloc(block, bytes));
      if (block == nullptr) block = old;
    } else {
      free(block);
      block = kind == 1   ? opaque(aligned_alloc(1 << 20, bytes))
              : kind == 2 ? opaque(calloc(1, bytes))
                          : opaque(malloc(bytes));
    }
    if (block != nullptr) std::memset(block, 1, malloc_usable_size(block));
    if (round % 256 == 0) malloc_trim(0);
  }
  for (void*& block : held) free(std::exchange(block, nullptr));
  // All of what was freed, in the smallest pieces.
  static void* small[2000];
  for (void*& block : small) {
    if ((block = opaque(malloc(8000))) != nullptr) std::memset(block, 1, 8000);
  }
  for (void* block : small) free(block);
}

void expect_that_all_can_be_used(const char* scenario, int error) {
  for (const char* most : {"0", "24M"}) {
    Launch launch;
    launch.scenario = scenario;
    launch.argument = error == 0 ? "" : std::to_string(error);
    launch.environment = {{"ANNEX_MAX_HEAP", most}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << most << ": " << describe(outcome);
  }
}

}  // namespace

ANNEX_SCENARIO(guards_used_again) {
  refuse_marks_as_asked();
  use_all_that_is_handed_out(1);
  return 0;
}
TEST(Guards, CanBeUsedAgain) { expect_that_all_can_be_used("guards_used_again", 0); }
TEST(Guards, CanBeUsedAgainWhereTheyAreMappings) {
  SKIP_WITHOUT_FILTERS();
  expect_that_all_can_be_used("guards_used_again", EINVAL);
}

// A sandbox that the process enters when it has guards already.
ANNEX_SCENARIO(guards_from_before_a_filter) {
  void* held[50];
  for (std::size_t i = 0; i < std::size(held); ++i) held[i] = opaque(malloc(30000 + i * 4000));
  use_all_that_is_handed_out(1);
  refuse_marks_as_asked();
  for (void* block : held) free(block);
  use_all_that_is_handed_out(2);
  return 0;
}
TEST(Guards, CanBeUsedAgainUnderAFilterThatCameLater) {
  SKIP_WITHOUT_FILTERS();
  expect_that_all_can_be_used("guards_from_before_a_filter", EPERM);
}

// Memory that is locked can't be marked; what was marked before it was locked can be used again.
ANNEX_SCENARIO(guards_in_locked_memory) {
  void* held[50];
  for (std::size_t i = 0; i < std::size(held); ++i) held[i] = opaque(malloc(30000 + i * 4000));
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return 77;
  for (void* block : held) free(block);
  use_all_that_is_handed_out(1);
  volatile char* block = static_cast<char*>(opaque(malloc(kBytes)));
  reached();
  block[kBytes] = 1;
  return survived();
}
TEST(Guards, InLockedMemory) {
  Launch launch;
  launch.scenario = "guards_in_locked_memory";
  const Outcome outcome = run_scenario(launch);
  if (outcome.exit_code == 77) GTEST_SKIP() << "so much can't be locked here";
  EXPECT_EQ(outcome.out, "reached\n") << describe(outcome);
  EXPECT_EQ(outcome.signal, SIGSEGV) << describe(outcome);
}

// --- they hold -------------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(behind_a_block_with_a_mapped_guard) {
  refuse_marks(EINVAL);
  volatile char* block = static_cast<char*>(opaque(malloc(kBytes)));
  reached();
  block[kBytes] = 1;
  return survived();
}
TEST(Guards, HoldWhereTheyAreMappings) {
  SKIP_WITHOUT_FILTERS();
  expect_fault("behind_a_block_with_a_mapped_guard");
}

// Given out again with what is around it, trimmed, and in a child.
ANNEX_SCENARIO(behind_a_block_of_a_child) {
  go_on(kBytes);
  volatile char* block = static_cast<char*>(opaque(malloc(kBytes)));
  malloc_trim(0);
  reached();
  const pid_t child = fork();
  if (child == 0) {
    block[kBytes] = 1;
    _exit(0);
  }
  int status = 0;
  SCENARIO_CHECK(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
  return survived();
}
TEST(Guards, HoldInAChild) { expect_fault("behind_a_block_of_a_child"); }
