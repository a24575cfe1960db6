// Fork handlers of a library that the program depends on, which allocate while Annex's own locks are held; and which
// hold a lock of their own, in which other threads allocate.
//
// FOREIGN_HANDLERS says whose were registered first: "first" (theirs: in a fork, they run inside of Annex's), or
// "last".
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "stress/fork/handlers.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

#ifdef ANNEX_TEST_SANITIZED
constexpr int kForks = 20;
constexpr bool kThreadsInChild = false;  // see stress/fork.cpp
#else
constexpr int kForks = 80;
constexpr bool kThreadsInChild = true;
#endif
constexpr int kThreads = 6;
constexpr unsigned kHangGuard = 100;  // seconds

bool theirs_first() {
  const char* order = getenv("FOREIGN_HANDLERS");
  DEMAND(order != nullptr);
  return strcmp(order, "first") == 0;
}

const char* doing = "";

// Says what hangs, and ends the process: of which the parent hears.
void give_up(int) {
  static const char kText[] = "hangs: ";
  if (write(2, kText, sizeof kText - 1) < 0 || write(2, doing, strlen(doing)) < 0 || write(2, "\n", 1) < 0) _exit(3);
  _exit(4);
}

void guard_against_hanging(const char* what) {
  doing = what;
  signal(SIGALRM, give_up);
  alarm(kHangGuard);
}
void go_on() { alarm(kHangGuard); }

void use_the_heap(std::uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const auto place = static_cast<unsigned>(random.next());
    const std::size_t bytes = random.below(50) == 0 ? random.between(40 * kKiB, 300 * kKiB) : random.between(8, 3000);
    void* block = opaque(annex_malloc(bytes));
    DEMAND(block != nullptr);
    annex_free(foreign_swap(place, block));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) DEMAND(errno == EINTR);
  return status;
}

[[noreturn]] void live_as_child(bool may_fork) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  guard_against_hanging("a child");
  use_the_heap(1);
  if (kThreadsInChild) {
    in_threads(2, [](int id) { use_the_heap(static_cast<std::uint64_t>(id)); });
  }
  DEMAND(stats_now().heaps > 0);
  if (may_fork) {
    doing = "a child that forks";
    const pid_t child = fork();
    DEMAND(child >= 0);
    if (child == 0) live_as_child(false);
    DEMAND(wait_for(child) == 0);
  }
  _exit(0);
}

// Forks; false where the child did not end as it should.
bool fork_once(bool child_forks) {
  const pid_t child = fork();
  DEMAND(child >= 0);
  if (child == 0) live_as_child(child_forks);
  return wait_for(child) == 0;
}

// Threads that run `body` until they are told to stop.
template <typename Body>
class Load {
 public:
  Load(int threads, Body body) : body_(body) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] {
        for (std::uint64_t round = 0; !stop_.load(std::memory_order_relaxed); ++round) {
          body_(static_cast<std::uint64_t>(i) * 1000 + round);
          ++rounds_;
        }
      });
    }
    let_run(threads);
  }
  ~Load() { stop_ = true; }
  // So that each fork meets another state.
  void let_run(int rounds) {
    const int target = rounds_ + rounds;
    while (rounds_ < target) sched_yield();
  }

 private:
  Body body_;
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::vector<Thread> threads_;  // joined after stop_ is set
};

void* fork_as_first_act(void*) { return fork_once(false) ? nullptr : &doing; }

}  // namespace

#ifdef ANNEX_TEST_REPLACED

// Every registration of the process comes by here, in order; the C library's pthread_atfork calls it by this name.
namespace {
void (*registered[64])() = {};
int registrations = 0;
}  // namespace
extern "C" [[gnu::visibility("default")]] int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                                                void* library) {
  if (registrations < 64) registered[registrations++] = prepare;
  const auto next = reinterpret_cast<decltype(&__register_atfork)>(dlsym(RTLD_NEXT, "__register_atfork"));
  return next(prepare, parent, child, library);
}

TEST(ForeignHandlers, AreRegisteredInTheOrderThatIsToBeTested) {
  Dl_info annex;
  DEMAND(dladdr(reinterpret_cast<void*>(&annex_version), &annex) != 0);
  int ours = -1;
  int theirs = -1;
  for (int i = 0; i < registrations; ++i) {
    Dl_info info;
    if (registered[i] == nullptr || dladdr(reinterpret_cast<void*>(registered[i]), &info) == 0) continue;
    if (ours < 0 && info.dli_fbase == annex.dli_fbase) ours = i;
    if (registered[i] == foreign_prepare) theirs = i;
  }
  ASSERT_GE(ours, 0);
  ASSERT_GE(theirs, 0);
  EXPECT_EQ(theirs < ours, theirs_first());
}

#endif

TEST(ForeignHandlers, Allocate) {
  guard_against_hanging("fork with handlers that allocate");
  Load load(kThreads, use_the_heap);
  const struct foreign_runs before = foreign_runs;
  for (int i = 0; i < kForks; ++i) {
    go_on();
    load.let_run(i % 5);
    if (i % 4 == 3) {  // in a thread that has no heap yet: the handlers are the first to ask for one
      pthread_t thread;
      void* failed = nullptr;
      DEMAND(pthread_create(&thread, nullptr, fork_as_first_act, nullptr) == 0);
      DEMAND(pthread_join(thread, &failed) == 0);
      ASSERT_EQ(failed, nullptr) << "fork " << i;
    } else {
      ASSERT_TRUE(fork_once(i % 10 == 0)) << "fork " << i;
    }
    use_the_heap(static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(foreign_runs.prepare - before.prepare, kForks);
  EXPECT_EQ(foreign_runs.parent - before.parent, kForks);
  alarm(0);
}

TEST(ForeignHandlers, AllocateWhileManyThreadsFork) {
  guard_against_hanging("forks in several threads at once");
  Load load(2, use_the_heap);
  in_threads(4, [](int) {
    for (int i = 0; i < kForks / 10; ++i) {
      go_on();
      DEMAND(fork_once(false));
    }
  });
  alarm(0);
}

TEST(ForeignHandlers, HoldALockInWhichOthersAllocate) {
  if (theirs_first()) GTEST_SKIP() << "Annex's locks are taken before theirs: no allocator can help";
  guard_against_hanging("fork with handlers that hold a lock");
  foreign_handlers_lock = 1;
  {
    Load load(kThreads, [](std::uint64_t seed) {
      pthread_mutex_lock(&foreign_mutex);
      use_the_heap(seed);
      pthread_mutex_unlock(&foreign_mutex);
    });
    for (int i = 0; i < kForks / 4; ++i) {
      go_on();
      load.let_run(i % 3);
      ASSERT_TRUE(fork_once(false)) << "fork " << i;
    }
  }
  foreign_handlers_lock = 0;
  alarm(0);
}
