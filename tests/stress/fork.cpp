// fork, vfork and posix_spawn at any moment of a program with threads: parent and child both go on.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "stress/harness.h"

using namespace annex_test;

extern char** environ;

namespace {

constexpr unsigned kHangGuard = 100;  // seconds after which a child that hangs is ended by SIGALRM

// The sanitizers do not support threads in the child of a process that had some, and their own malloc may be locked for
// ever there: such a child starts none and uses nothing but Annex.
#ifdef ANNEX_TEST_SANITIZED
constexpr int kThreadsInChild = 0;
#else
constexpr int kThreadsInChild = 3;
#endif

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) DEMAND(errno == EINTR);
  return status;
}

// What every child does: use what it inherited, run threads of its own, end normally.
void live_as_child(Slots& slots, std::uint64_t seed) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kHangGuard);
  Random random(seed);
  // The parcels that were in the slots at the fork belong to threads that do not exist here.
  trade(slots, random, 300);
  in_threads(kThreadsInChild, [&](int id) {
    Random own(seed + static_cast<std::uint64_t>(id));
    trade(slots, own, 200);
  });
  slots.clear();
  DEMAND(stats_now().heaps > 0);
  annex_purge();
  trade(slots, random, 100);
  slots.clear();
}

// Threads that trade until they are told to stop.
class Load {
 public:
  Load(Slots& slots, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &slots, i] {
        Random random(static_cast<std::uint64_t>(i) + 1000);
        ++started_;
        while (!stop_.load(std::memory_order_relaxed)) {
          trade(slots, random, 20);
          ++rounds_;
        }
      });
    }
    while (started_ < threads) sched_yield();
  }
  ~Load() { stop_ = true; }

  // Waits until the threads have got on by some rounds, so that each fork meets another state.
  void let_run(int rounds) {
    const int target = rounds_ + rounds;
    while (rounds_ < target) sched_yield();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::atomic<int> started_{0};
  std::vector<Thread> threads_;  // joined after stop_ is set
};

constexpr int kForks = kSlowdown > 1 ? 15 : 60;

}  // namespace

TEST(Fork, UnderLoad) {
  Slots slots;
  Random random(5);
  Load load(slots, 6);
  for (int i = 0; i < kForks; ++i) {
    load.let_run(i % 7);
    const pid_t child = fork();
    DEMAND(child >= 0);
    if (child == 0) {
      live_as_child(slots, static_cast<std::uint64_t>(i));
      _exit(0);
    }
    trade(slots, random, 50);
    ASSERT_EQ(wait_for(child), 0) << "fork " << i;
  }
}

namespace {

// Makes and frees spans as fast as it can: nearly all of the time is spent in the books of the arena.
void churn_spans(Random& random, int steps) {
  constexpr std::size_t kHeld = 12;
  std::uint64_t* held[kHeld] = {};
  for (int i = 0; i < steps; ++i) {
    std::uint64_t*& slot = held[random.below(kHeld)];
    if (slot != nullptr) DEMAND(*slot == reinterpret_cast<std::uintptr_t>(slot));
    annex_free(slot);
    slot = static_cast<std::uint64_t*>(opaque(annex_malloc(random.between(40 * kKiB, 900 * kKiB))));
    DEMAND(slot != nullptr);
    *slot = reinterpret_cast<std::uintptr_t>(slot);
  }
  for (std::uint64_t* slot : held) {
    if (slot != nullptr) DEMAND(*slot == reinterpret_cast<std::uintptr_t>(slot));
    annex_free(slot);
  }
}

int in_order(const annex_region* region, void* context) {
  const char*& end = *static_cast<const char**>(context);
  const char* start = static_cast<const char*>(region->start);
  if (region->bytes == 0 || start < end) return 1;
  end = start + region->bytes;
  return 0;
}

}  // namespace

TEST(Fork, WhileTheArenaChanges) {
  std::atomic<bool> stop{false};
  std::atomic<int> started{0};
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i));
      ++started;
      while (!stop) churn_spans(random, 200);
    });
  }
  while (started < 4) sched_yield();
  for (int i = 0; i < 4 * kForks; ++i) {
    const pid_t child = fork();
    DEMAND(child >= 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(kHangGuard);
      const char* end = nullptr;
      DEMAND(annex_heap_walk(in_order, &end) == 0);
      Random random(static_cast<std::uint64_t>(i));
      churn_spans(random, 300);
      annex_purge();
      end = nullptr;
      DEMAND(annex_heap_walk(in_order, &end) == 0);
      _exit(0);
    }
    DEMAND(wait_for(child) == 0);
  }
  stop = true;
}

// fork waits for the locks of stdio while it keeps ours, and whoever holds one of those allocates.
TEST(Fork, WhileOthersAllocateInStdio) {
  char name[] = "/tmp/annex-fork-XXXXXX";
  const int file = mkstemp(name);
  DEMAND(file >= 0);
  const std::string line = std::string(100000, 'x') + '\n';
  for (int i = 0; i < 4; ++i) DEMAND(write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  close(file);
  std::atomic<bool> stop{false};
  {
    Thread flusher([&] {
      while (!stop) fflush(nullptr);
    });
    const auto read = [&] {
      while (!stop) {
        FILE* const stream = fopen(name, "r");
        DEMAND(stream != nullptr);
        char* text = nullptr;
        std::size_t room = 0;
        while (getline(&text, &room, stream) > 0) {
        }
        free(text);
        fclose(stream);
      }
    };
    Thread reader(read);
    Thread other(read);
    alarm(kHangGuard);
    for (int i = 0; i < kForks; ++i) {
      const pid_t child = fork();
      DEMAND(child >= 0);
      if (child == 0) {
        const char* end = nullptr;
        DEMAND(annex_heap_walk(in_order, &end) == 0);
        Random random(static_cast<std::uint64_t>(i));
        churn_spans(random, 20);
        _exit(0);
      }
      ASSERT_EQ(wait_for(child), 0) << "fork " << i;
    }
    stop = true;
  }
  alarm(0);
  unlink(name);
}

namespace {

constexpr int kForksInHandler = 4 * kForks;
std::atomic<int> forks_in_handler{0};
std::atomic<bool> is_child{false};

// In a while; not every so often, as a fork may take longer than that.
void ask_for_signal() {
  const struct itimerval once = {{0, 0}, {0, 300}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void fork_in_handler(int) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(kHangGuard);
    is_child = true;
    return;
  }
  DEMAND(child > 0);
  DEMAND(wait_for(child) == 0);
  if (++forks_in_handler < kForksInHandler) ask_for_signal();
}

// A signal comes every now and then to the thread that allocates, and forks. The child goes on with what the signal has
// interrupted.
void allocate_while_signals_fork() {
  const auto before = signal(SIGALRM, fork_in_handler);
  forks_in_handler = 0;
  ask_for_signal();
  Random random(3);
  std::vector<void*> held(64);
  int steps_in_child = 0;
  while (forks_in_handler < kForksInHandler) {
    void*& slot = held[random.below(held.size())];
    annex_free(slot);
    slot = opaque(annex_malloc(random.between(1, 200 * kKiB)));
    DEMAND(slot != nullptr);
    if (is_child && ++steps_in_child == 50) _exit(0);
  }
  for (void* slot : held) annex_free(slot);
  signal(SIGALRM, before);
}

}  // namespace

TEST(Fork, InAHandlerOfASignalInsideMalloc) { allocate_while_signals_fork(); }

TEST(Fork, InAHandlerOfASignalBesideOtherThreads) {
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, nullptr);  // for the threads of the load alone
  std::atomic<bool> stop{false};
  Thread other([&] {
    Random random(9);
    while (!stop) churn_spans(random, 50);
  });
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  allocate_while_signals_fork();
  stop = true;
}

TEST(Fork, ManyChildrenAtOnce) {
  Slots slots;
  Load load(slots, 4);
  std::vector<pid_t> children;
  for (int i = 0; i < 12; ++i) {
    load.let_run(2);
    const pid_t child = fork();
    DEMAND(child >= 0);
    if (child == 0) {
      live_as_child(slots, static_cast<std::uint64_t>(i));
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
}

#ifndef ANNEX_TEST_SANITIZED
TEST(Fork, ChildEndsThroughExit) {
  // exit() with its atexit functions and destructors, on a heap whose other threads are gone.
  Slots slots;
  Load load(slots, 4);
  for (int i = 0; i < kForks / 3; ++i) {
    load.let_run(3);
    fflush(nullptr);
    const pid_t child = fork();
    DEMAND(child >= 0);
    if (child == 0) {
      live_as_child(slots, static_cast<std::uint64_t>(i));
      exit(0);
    }
    ASSERT_EQ(wait_for(child), 0) << "fork " << i;
  }
}
#endif

TEST(Fork, FromAThreadAndFromTheChild) {
  Slots slots;
  Load load(slots, 3);
  in_threads(3, [&](int id) {
    for (int i = 0; i < kForks / 10; ++i) {
      const pid_t child = fork();
      DEMAND(child >= 0);
      if (child == 0) {
        live_as_child(slots, static_cast<std::uint64_t>(id));
        const pid_t grandchild = fork();
        DEMAND(grandchild >= 0);
        if (grandchild == 0) {
          live_as_child(slots, static_cast<std::uint64_t>(id) + 50);
          _exit(0);
        }
        _exit(wait_for(grandchild) == 0 ? 0 : 1);
      }
      DEMAND(wait_for(child) == 0);
    }
  });
}

TEST(Fork, OfAProcessWithoutThreads) {
  // The parent is single-threaded here, the child is not, and frees what the parent allocated.
  Parcel* parcel = make_parcel(1000, 4);
  Parcel* large = make_parcel(3 * kMiB, 5);
  const pid_t child = fork();
  DEMAND(child >= 0);
  if (child == 0) {
    alarm(kHangGuard);
    Thread([&] { free_parcel(parcel); }).join();
    free_parcel(large);
    _exit(0);
  }
  EXPECT_EQ(wait_for(child), 0);
  free_parcel(parcel);
  free_parcel(large);
}

TEST(Fork, SpawnUnderLoad) {
  Slots slots;
  Load load(slots, 4);
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  for (int i = 0; i < kForks; ++i) {
    pid_t child;
    ASSERT_EQ(posix_spawnp(&child, name, nullptr, nullptr, arguments, environ), 0);
    ASSERT_EQ(wait_for(child), 0);
  }
}

TEST(Fork, SystemAndPopenUnderLoad) {
  Slots slots;
  Load load(slots, 4);
  for (int i = 0; i < kForks / 3; ++i) {
    ASSERT_EQ(WEXITSTATUS(system("exit 3")), 3);
    FILE* pipe = popen("echo 42", "r");
    ASSERT_NE(pipe, nullptr);
    int answer = 0;
    EXPECT_EQ(fscanf(pipe, "%d", &answer), 1);
    EXPECT_EQ(answer, 42);
    EXPECT_EQ(pclose(pipe), 0);
  }
}

namespace {

// Alone in a function: vfork returns twice, and no variable of the caller's may be in a register
// then.
[[gnu::noinline]] pid_t vfork_and_end() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t child = vfork();
#pragma GCC diagnostic pop
  if (child == 0) _exit(7);
  return child;
}

}  // namespace

TEST(Fork, VforkUnderLoad) {
  Slots slots;
  Load load(slots, 4);
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = vfork_and_end();
    DEMAND(child >= 0);
    ASSERT_EQ(WEXITSTATUS(wait_for(child)), 7);
  }
}
