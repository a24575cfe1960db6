// Under a filter that allows the system calls that a program on the C library's allocator makes, and ends the process
// for any other: the library makes none beside those once it has started.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "api.h"

using namespace annex_test;

namespace {

// What glibc's malloc, free and trim call (brk, mmap, munmap, mremap, mprotect, madvise, futex), its threads as they
// start and end, and its own start of an arena's first use (getrandom, sched_getaffinity); and what the test itself
// does.
constexpr long kAllowed[] = {
    SYS_brk,   SYS_mmap,           SYS_munmap, SYS_mremap,     SYS_mprotect,          SYS_madvise,
    SYS_futex, SYS_rt_sigprocmask, SYS_exit,   SYS_exit_group, SYS_set_robust_list,   SYS_rseq,
    SYS_write, SYS_getrandom,      SYS_clone,  SYS_clone3,     SYS_sched_getaffinity,
};

void forbid_all_but_allowed() {
  constexpr std::size_t kCount = std::size(kAllowed);
  sock_filter filter[2 * kCount + 2];
  std::size_t at = 0;
  filter[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (long number : kAllowed) {
    filter[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1);
    filter[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  filter[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_fprog program{static_cast<unsigned short>(at), filter};
  SCENARIO_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  SCENARIO_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

void allocate_of_every_kind() {
  static void* blocks[400];
  unsigned random = 1;
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < std::size(blocks); ++i) {
      random = random * 1103515245 + 12345;
      const std::size_t most = i % 16 == 0 ? 6 * kMiB : i % 3 == 0 ? 60000 : 2000;
      const std::size_t bytes = (random >> 8) % most + 1;
      blocks[i] = i % 5 == 0 ? opaque(calloc(1, bytes)) : opaque(malloc(bytes));
      SCENARIO_CHECK(blocks[i] != nullptr);
      *static_cast<char*>(blocks[i]) = 1;
      if (i % 7 == 0) blocks[i] = opaque(realloc(blocks[i], 2 * bytes));
    }
    for (void* block : blocks) free(block);
    malloc_trim(0);
  }
  for (int i = 0; i < 8; ++i) {  // fresh spans, filled
    blocks[i] = opaque(malloc((3 + static_cast<std::size_t>(i)) * kMiB));
    std::memset(blocks[i], 1, (3 + static_cast<std::size_t>(i)) * kMiB);
    if (i % 2 == 1) free(blocks[i]);
  }
}

pthread_barrier_t barrier;

void* work_and_end(void*) {
  pthread_barrier_wait(&barrier);  // the filter is there
  void* block = opaque(malloc(100));
  free(block);
  return nullptr;
}

}  // namespace

ANNEX_SCENARIO(filtered) {
  free(opaque(malloc(1)));
  forbid_all_but_allowed();
  allocate_of_every_kind();
  _exit(0);
}

// Threads that began before, and have not allocated yet; and those that begin under the filter.
ANNEX_SCENARIO(filtered_with_threads) {
  free(opaque(malloc(1)));
  pthread_t threads[3];
  pthread_barrier_init(&barrier, nullptr, 3);
  for (int i = 0; i < 2; ++i) SCENARIO_CHECK(pthread_create(&threads[i], nullptr, work_and_end, nullptr) == 0);
  forbid_all_but_allowed();
  SCENARIO_CHECK(pthread_create(&threads[2], nullptr, work_and_end, nullptr) == 0);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  allocate_of_every_kind();
  _exit(0);
}

TEST(Seccomp, NoSystemCallThatTheCLibrarysAllocatorDoesNotMake) {
  for (const char* scenario : {"filtered", "filtered_with_threads"}) {
    Launch launch;
    launch.scenario = scenario;
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << scenario << ": " << describe(outcome);
    EXPECT_EQ(outcome.err, "") << scenario;
  }
}
