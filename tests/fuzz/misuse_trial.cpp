// Traffic, and the wrong call at its end; see misuse_trial.h.
#include "fuzz/misuse_trial.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "annex/annex.h"
#include "common/opaque.h"
#include "fuzz/misuse_crew.h"
#include "fuzz/misuse_libc.h"
#include "fuzz/misuse_target.h"

#ifdef ANNEX_TEST_REPLACED
extern "C" {
void cfree(void* block);
void free_sized(void* block, std::size_t bytes);
void free_aligned_sized(void* block, std::size_t alignment, std::size_t bytes);
}
#endif

namespace annex_test {
namespace {

#if defined(ANNEX_TEST_SANITIZED)
constexpr std::size_t kMostSteps = 300;
#else
constexpr std::size_t kMostSteps = 1500;
#endif

// So much traffic wakes the support thread of the offload flavour: hand-overs of a few blocks each, none of which comes
// back while it goes on.
constexpr std::size_t kWakingBlocks = 2500;

struct Trial {
  explicit Trial(std::uint64_t seed) : random(seed), appetite(&random) {}

  Random random;
  Appetite appetite;
  Record* record = nullptr;
  std::uint64_t round_seed = 0;
  std::size_t most_steps = 0;
};

// What a trial needs much room for stands in static storage, where the heap under test has no part in it.
Crew crew;

[[noreturn]] void broken(Record* record, const char* what) {
  snprintf(record->note, sizeof record->note, "%s", what);
  record->stage = Stage::kBroken;
  _exit(4);
}

// --- traffic --------------------------------------------------------------------------------------------------------

void work(std::size_t member, void* argument) {
  const Trial* trial = static_cast<const Trial*>(argument);
  Random random(trial->round_seed + member);
  const unsigned growth = static_cast<unsigned>(random.between(20, 80));
  // Some hardly work, or not at all: a thread that has no heap yet.
  const std::size_t steps = random.chance(15) ? 0 : random.between(1, trial->most_steps);
  for (std::size_t i = 0; i < steps; ++i) {
    if (!crew.ledger(member).step(&random, trial->appetite, growth)) {
      broken(trial->record, crew.ledger(member).problem());
    }
  }
}

void trim(std::size_t, void*) { annex_purge(); }

// All threads at once, or each in its turn, which makes the same trial of the same seed.
void round(Trial* trial, bool in_turns) {
  Random& random = trial->random;
  trial->round_seed = random.next();
  if (in_turns) {
    for (std::size_t i = 0; i < Crew::kMost; ++i) {
      if (crew.present(i)) crew.run(i, work, trial);
    }
  } else {
    crew.run_all(work, trial);
  }
  for (std::size_t i = 0; i < crew.size() && crew.size() > 1; ++i) {
    crew.ledger(crew.draw(&random)).pass_to(&crew.ledger(crew.draw(&random)), &random, random.below(200));
  }
  if (random.chance(5)) crew.run(crew.draw(&random), trim, nullptr);
}

void wake_support_thread() {
  static void* blocks[kWakingBlocks];
  for (void*& block : blocks) block = opaque(annex_malloc(1024));
  for (void* block : blocks) annex_free(block);
}

void check_all(Record* record) {
  for (std::size_t member = 0; member < Crew::kMost; ++member) {
    const Ledger& ledger = crew.ledger(member);
    for (std::size_t i = 0; i < ledger.held(); ++i) {
      if (!ledger.check(i)) broken(record, "a block lost what was in it");
    }
  }
}

void traffic(Trial* trial) {
  Random& random = trial->random;
  const bool threaded = random.chance(50);
  const bool in_turns = random.chance(50);
  const std::size_t threads = threaded ? random.between(1, random.chance(20) ? Crew::kMost - 1 : 3) : 0;
  for (std::size_t i = 0; i < threads; ++i) crew.start();
#ifdef ANNEX_TEST_REPLACED
  if (threaded && !libc_took_any()) broken(trial->record, "what libc takes for a thread is not seen");
#endif
  if (random.chance(40)) wake_support_thread();
  const std::size_t rounds = random.between(1, 6);
  trial->most_steps = random.chance(10) ? 4 * kMostSteps : random.between(10, kMostSteps);
  for (std::size_t i = 0; i < rounds; ++i) {
    round(trial, in_turns);
    if (!threaded || !random.chance(10)) continue;
    const std::size_t member = crew.draw(&random);
    if (member != 0) crew.end(member);
    if (random.chance(50)) crew.start();
  }
}

#ifdef ANNEX_TEST_REPLACED  // the sanitizers don't follow a process with threads into its child
// Goes on in a forked child, whose end becomes this process's own.
void go_on_in_a_child() {
  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return crew.forget_threads();
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}
#endif

// --- the wrong call -------------------------------------------------------------------------------------------------

// How many threads Annex has in this process, by their names. What opendir allocates it has freed when this returns.
void count_own_threads(Record* record) {
  DIR* threads = opendir("/proc/self/task");
  if (threads == nullptr) return;
  while (const dirent* entry = readdir(threads)) {
    char path[sizeof entry->d_name + 32];
    char name[16] = {};
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    if (read(file, name, sizeof name - 1) < 0) name[0] = 0;
    close(file);
    record->support_threads += strncmp(name, "annex-support", 13) == 0;
    record->purging_threads += strncmp(name, "annex-purge", 11) == 0;
  }
  closedir(threads);
}

void count_in_use_again(Random* random, Record* record) {
  constexpr std::size_t kLate = 32;  // looked at, of each thread's
  for (std::size_t member = 0; member < Crew::kMost; ++member) {
    const Ledger& ledger = crew.ledger(member);
    for (std::size_t i = 0; i < std::min(ledger.freed(), kSoon + kLate); ++i) {
      const bool late = i >= kSoon;
      const std::size_t index = late ? random->between(kSoon, ledger.freed() - 1) : i;
      ++record->freed[late];
      record->in_use_again[late] += crew.live(ledger.freed(index).start);
    }
  }
}

Call draw_call(Random* random) {
#ifdef ANNEX_TEST_REPLACED
  return random->chance(40) ? Call::kFree : static_cast<Call>(random->below(kCalls));
#else
  // The other names are the sanitizer's there.
  return static_cast<Call>(random->below(static_cast<std::size_t>(Call::kUsableSize) + 1));
#endif
}

struct Misuse {
  Call call;
  void* address;
  std::size_t bytes;
  Record* record;
};

void misuse(std::size_t, void* argument) {
  const Misuse* wrong = static_cast<const Misuse*>(argument);
  void* const address = opaque(wrong->address);
  wrong->record->stage = Stage::kMisuse;
  switch (wrong->call) {
    case Call::kRealloc:
      opaque(annex_realloc(address, wrong->bytes));
      break;
    case Call::kUsableSize:
      opaque(annex_usable_size(address));
      break;
#ifdef ANNEX_TEST_REPLACED
    case Call::kDelete:
      ::operator delete(address);
      break;
    case Call::kSizedDelete:
      ::operator delete(address, wrong->bytes);
      break;
    case Call::kAlignedDelete:
      ::operator delete[](address, std::align_val_t{64});
      break;
    case Call::kFreeSized:
      free_sized(address, wrong->bytes);
      break;
    case Call::kFreeAlignedSized:
      free_aligned_sized(address, 32, wrong->bytes);
      break;
    case Call::kCfree:
      cfree(address);
      break;
#endif
    default:
      annex_free(address);
  }
  wrong->record->stage = Stage::kSurvived;
}

// Made known to a thread, it has the wrong call made when the thread ends, after Annex's own destructor.
pthread_key_t at_the_end;
void misuse_at_the_end(std::size_t, void* wrong) { pthread_setspecific(at_the_end, wrong); }

}  // namespace

int run_trial(std::uint64_t seed, Record* record) {
  Trial trial(seed);
  trial.record = record;
  record->stage = Stage::kTraffic;
  // A third without any wrong call, the rest shared by all kinds.
  Random& random = trial.random;
  const Wrong wanted = random.chance(33) ? Wrong::kNothing : static_cast<Wrong>(random.between(1, kKinds - 1));
  traffic(&trial);
#ifdef ANNEX_TEST_REPLACED
  if (random.chance(10)) {
    go_on_in_a_child();
    round(&trial, true);
  }
#endif
  check_all(record);
  record->threads = static_cast<std::uint32_t>(crew.size());
  count_own_threads(record);
  count_in_use_again(&random, record);
  if (wanted == Wrong::kNothing) {
    record->stage = Stage::kFinished;
    return 0;
  }
  const Target target = choose_target(wanted, &random, &crew);
  const std::size_t bytes = random.chance(50) ? std::max<std::size_t>(target.bytes, 1) : random.between(0, 5000);
  Misuse wrong = {draw_call(&random), target.address, bytes, record};
  const std::size_t member = crew.draw(&random);
  record->wrong = target.wrong;
  record->call = wrong.call;
  record->address = target.address;
  record->block_bytes = target.bytes;
  record->thread = static_cast<std::uint32_t>(member);
  if (member == 0 || random.chance(75)) {
    crew.run(member, misuse, &wrong);
  } else if (pthread_key_create(&at_the_end, [](void* argument) { misuse(0, argument); }) == 0) {
    crew.run(member, misuse_at_the_end, &wrong);
    crew.end(member);
  }
  return 0;
}

}  // namespace annex_test
