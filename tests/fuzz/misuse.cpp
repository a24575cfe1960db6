// The fuzzer of misuse: for a while, trials of correct use of the heap that end in one wrong free (or realloc, or
// malloc_usable_size). Each must end there, by abort, after one line of Annex's that names the address. A third of the
// trials makes no wrong call, and must come to its end.
//
//   misuse-FLAVOUR [--seconds=N] [--first-seed=N]   ANNEX_MISUSE_SECONDS says how long, too; 60 by default
//   misuse-FLAVOUR --seed=N                         that one trial, its outcome in words
//
// Each trial is this same program, started anew with --trial=SEED: its heap, its secrets and its addresses are fresh,
// and so are the settings that the library reads once (settings_of).
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "annex/annex.h"
#include "common/random.h"
#include "fuzz/misuse_record.h"
#include "fuzz/misuse_trial.h"

extern char** environ;

using namespace annex_test;

namespace {

constexpr int kRecordFile = 3;  // where a trial finds its record
constexpr unsigned kTrialSeconds = 120;
constexpr std::size_t kMostShown = 20;

std::string program;
std::string flavour;

struct Counts {
  std::size_t trials = 0;
  std::size_t found = 0;  // or finished, where nothing was wrong
  std::size_t survived = 0;
  std::size_t otherwise = 0;  // crashed, hung, was stopped before, said something else
};

[[noreturn]] void stop(const char* what) {
  fprintf(stderr, "misuse: %s: %s\n", what, strerror(errno));
  exit(2);
}

// --- a trial, from outside ------------------------------------------------------------------------------------------

// Half of the trials run as the library does by default.
std::vector<std::string> settings_of(std::uint64_t seed) {
  Random random(~seed);
  std::vector<std::string> settings;
  if (random.chance(50)) return settings;
  if (random.chance(30)) settings.push_back("ANNEX_RESERVE=32M");  // many arenas
  if (random.chance(30)) settings.push_back("ANNEX_PURGE_DELAY=0");
  if (random.chance(20)) settings.push_back("ANNEX_BACKGROUND=0");
  if (flavour == "offload" && random.chance(60)) {
    settings.push_back(random.chance(50) ? "ANNEX_PROTOCOL=queue" : "ANNEX_PROTOCOL=handshake");
  }
  return settings;
}

class Trials {
 public:
  Trials() : record_file_(memfd_create("record", MFD_CLOEXEC)), words_file_(memfd_create("words", MFD_CLOEXEC)) {
    if (record_file_ < 0 || words_file_ < 0 || ftruncate(record_file_, sizeof(Record)) != 0) stop("memfd");
    void* shared = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, record_file_, 0);
    if (shared == MAP_FAILED) stop("mmap");
    record_ = static_cast<Record*>(shared);
  }

  void run(std::uint64_t seed) {
    new (record_) Record;
    if (ftruncate(words_file_, 0) != 0 || lseek(words_file_, 0, SEEK_SET) != 0) stop("words");
    std::string option = "--trial=" + std::to_string(seed);
    char* arguments[] = {program.data(), option.data(), nullptr};
    std::vector<std::string> settings = settings_of(seed);
    std::vector<char*> environment;
    for (std::string& setting : settings) environment.push_back(setting.data());
    for (char** at = environ; *at != nullptr; ++at) environment.push_back(*at);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, record_file_, kRecordFile);
    posix_spawn_file_actions_adddup2(&files, words_file_, STDERR_FILENO);
    pid_t child = 0;
    const int error = posix_spawn(&child, "/proc/self/exe", &files, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      errno = error;
      stop("posix_spawn");
    }
    while (waitpid(child, &status_, 0) < 0 && errno == EINTR) {
    }
    words_.resize(static_cast<std::size_t>(lseek(words_file_, 0, SEEK_END)));
    const ssize_t length = pread(words_file_, words_.data(), words_.size(), 0);
    if (length != static_cast<ssize_t>(words_.size())) stop("words");
  }

  const Record& record() const { return *record_; }
  const std::string& words() const { return words_; }
  Wrong wrong() const { return record_->wrong; }
  bool survived() const { return record_->stage == Stage::kSurvived; }

  bool as_it_should_be() const {
    if (wrong() == Wrong::kNothing) {
      return WIFEXITED(status_) && WEXITSTATUS(status_) == 0 && record_->stage == Stage::kFinished && words_.empty();
    }
    return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGABRT && record_->stage == Stage::kMisuse && one_clear_line();
  }

  std::string ending() const {
    if (WIFSIGNALED(status_))
      return std::string("signal ") + std::to_string(WTERMSIG(status_)) + " (" + strsignal(WTERMSIG(status_)) + ")";
    return "exit code " + std::to_string(WEXITSTATUS(status_));
  }

 private:
  // What is wrong, the address, perhaps what lies there, and the process.
  bool one_clear_line() const {
    char address[32];
    snprintf(address, sizeof address, ": %p", record_->address);
    const size_t at = words_.find(address);
    const std::string behind = at == std::string::npos ? "" : words_.substr(at + strlen(address));
    return words_.compare(0, 7, "annex: ") == 0 && std::count(words_.begin(), words_.end(), '\n') == 1 &&
           (behind.compare(0, 4, " in ") == 0 ||
            (behind.compare(0, 2, " (") == 0 && behind.find(") in ") != behind.npos));
  }

  int record_file_;
  int words_file_;
  Record* record_;
  int status_ = 0;
  std::string words_;
};

// --- in words -------------------------------------------------------------------------------------------------------

const char* stage_in_words(Stage stage) {
  switch (stage) {
    case Stage::kNotStarted:
      return "before it began";
    case Stage::kTraffic:
      return "in correct use";
    case Stage::kMisuse:
      return "in the wrong call";
    case Stage::kSurvived:
      return "after the wrong call had returned";
    case Stage::kFinished:
      return "at its end";
    default:
      return "in correct use";
  }
}

void describe(std::uint64_t seed, const Trials& trial) {
  const Record& record = trial.record();
  printf("%s: seed %llu", flavour.c_str(), static_cast<unsigned long long>(seed));
  for (const std::string& setting : settings_of(seed)) printf(", %s", setting.c_str());
  if (trial.wrong() != Wrong::kNothing) {
    printf("\n  wrong: %s of %p (%s, block of %zu), by thread %u of %u; of Annex's %u support, %u purge",
           kCallNames[static_cast<std::size_t>(record.call)], record.address,
           kKindNames[static_cast<std::size_t>(record.wrong)], record.block_bytes, record.thread, record.threads,
           record.support_threads, record.purging_threads);
  }
  printf("\n  ended %s with %s; on standard error: %s", stage_in_words(record.stage), trial.ending().c_str(),
         trial.words().empty() ? "nothing\n" : trial.words().c_str());
  if (record.note[0] != 0) printf("  %s\n", record.note);
}

void print_table(const Counts (&counts)[kKinds]) {
  printf("%-18s %8s %8s %9s %10s\n", "kind", "trials", "found", "survived", "otherwise");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Counts& row = counts[kind];
    printf("%-18s %8zu %8zu %9zu %10zu\n", kKindNames[kind], row.trials, row.found, row.survived, row.otherwise);
  }
}

// --- all of them ----------------------------------------------------------------------------------------------------

int run_one(std::uint64_t seed) {
  Trials trials;
  trials.run(seed);
  describe(seed, trials);
  printf("  %s\n", trials.as_it_should_be() ? "as it should be" : "WRONG");
  return trials.as_it_should_be() ? 0 : 1;
}

int run_many(std::uint64_t first_seed, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto passed = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Trials trials;
  Counts counts[kKinds];
  std::size_t failures = 0;
  std::size_t threaded = 0;
  std::size_t supported = 0;
  std::size_t freed[2] = {};
  std::size_t in_use_again[2] = {};
  std::uint64_t seed = first_seed;
  for (; passed() < seconds || seed == first_seed; ++seed) {  // one at least: none would prove nothing
    trials.run(seed);
    Counts& row = counts[static_cast<std::size_t>(trials.wrong())];
    ++row.trials;
    threaded += trials.record().threads > 1;
    supported += trials.record().support_threads > 0;
    for (int late = 0; late < 2; ++late) {
      freed[late] += trials.record().freed[late];
      in_use_again[late] += trials.record().in_use_again[late];
    }
    if (trials.as_it_should_be()) {
      ++row.found;
    } else {
      ++(trials.survived() ? row.survived : row.otherwise);
      if (++failures <= kMostShown) {
        describe(seed, trials);
        printf("  again: %s --seed=%llu\n", program.c_str(), static_cast<unsigned long long>(seed));
      }
    }
    if (isatty(STDOUT_FILENO) && seed % 64 == 0) {
      printf("\r%llu trials, %zu failed ", static_cast<unsigned long long>(seed - first_seed), failures);
      fflush(stdout);
    }
  }
  printf("\n%s, %llu trials in %.0f s (seeds from %llu), %zu of them with several threads, %zu with a support thread\n",
         flavour.c_str(), static_cast<unsigned long long>(seed - first_seed), passed(),
         static_cast<unsigned long long>(first_seed), threaded, supported);
  print_table(counts);
  const auto percent = [&](int late) { return 100.0 * in_use_again[late] / std::max<std::size_t>(freed[late], 1); };
  printf(
      "Not tried, since it cannot be found: a second free of an address that is in use again. So were %.1f %% of the\n"
      "addresses of the %zu blocks that each thread had freed last, and %.1f %% of those freed before.\n",
      percent(0), kSoon, percent(1));
  return failures == 0 ? 0 : 1;
}

// The value of --NAME=VALUE where the argument is that.
const char* option(const char* argument, const char* name) {
  const std::size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : nullptr;
}

int be_trial(const char* seed) {
  alarm(kTrialSeconds);  // for one that hangs
  void* shared = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, kRecordFile, 0);
  if (shared == MAP_FAILED) stop("a trial is started by the fuzzer alone; try --seed");
  // With the library's end: correct use goes on until then, and helper threads are joined there.
  exit(run_trial(strtoull(seed, nullptr, 10), static_cast<Record*>(shared)));
}

}  // namespace

int main(int argc, char** argv) {
  const char* version = annex_version();
  const char* in_seconds = getenv("ANNEX_MISUSE_SECONDS");
  double seconds = in_seconds != nullptr ? atof(in_seconds) : 60;
  std::uint64_t first_seed = static_cast<std::uint64_t>(time(nullptr)) * 1000000;
  program = argv[0];
  flavour = strrchr(version, ' ') + 1;
  for (int i = 1; i < argc; ++i) {
    if (const char* value = option(argv[i], "--trial")) return be_trial(value);
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  for (int i = 1; i < argc; ++i) {
    if (const char* value = option(argv[i], "--seed")) return run_one(strtoull(value, nullptr, 10));
    if (const char* value = option(argv[i], "--seconds")) {
      seconds = atof(value);
    } else if (const char* value = option(argv[i], "--first-seed")) {
      first_seed = strtoull(value, nullptr, 10);
    } else {
      fprintf(stderr, "misuse: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  return run_many(first_seed, seconds);
}
