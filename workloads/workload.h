// What every workload needs and nothing else: options, a random stream, a clock, checks, threads, the one JSON line.
//
// A workload does a fixed amount of work (so CPU time can be compared), proves to itself that the work was right, and
// prints one line: {"workload":..., "ops":..., "seconds":..., "score":..., "checksum":...}. ops and checksum are the
// same on every run and under every allocator; score is seconds an operation, lower is better.
//
// All take --scale, --seed and --threads, so that they can be run alike. Where nothing is random, or one thread works,
// the option says so. --scale multiplies steps, and never the size of a structure: a short run is at work in a table,
// a graph or a window as large as a long one's. sizes.csv has what the papers say of sizes.

#pragma once

#include <annex/region.h>

#include <barrier>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace workload {

// Stops the program: a workload that computed something wrong must not report a time.
inline void require(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "workload failed its own check: %s\n", what);
  exit(1);
}

// Mixes a value well (the finalizer that Steele, Lea and Flood give for SplitMix, OOPSLA 2014).
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// What --seed adds to every stream's start. Nothing for 1, the default.
inline uint64_t g_seed = 0;

// A random stream, the same for the same number and --seed everywhere.
class Random {
 public:
  explicit Random(uint64_t stream) : state_(mix(stream + 1 + g_seed)) {}
  constexpr uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, bound), for bound below 2^32.
  constexpr uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
  // Uniform in [low, high].
  constexpr uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }

 private:
  uint64_t state_;
};

enum class Chance { kSeeded, kNone };  // whether a workload draws random numbers

// Named numbers from the command line: --name value or --name=value. Every workload has --scale (steps times this),
// --seed, and either threads() or one_thread().
class Options {
 public:
  Options(int argc, char** argv, const char* about, Chance chance = Chance::kSeeded) : about_(about) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      std::string value;
      const size_t equals = name.find('=');
      if (equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
      } else if (name != "--help" && i + 1 < argc) {
        value = argv[++i];
      }
      given_.push_back({name, value, false});
    }
    scale_ = real("--scale", 1.0, "multiplies the steps, and no size");
    if (chance == Chance::kSeeded) {
      const uint32_t seed = count("--seed", 1, "number of the random streams");
      g_seed = seed == 1 ? 0 : mix(seed + 1);
    } else {
      count("--seed", 1, "accepted, and changes nothing: nothing here is random");
    }
  }

  double real(const char* name, double otherwise, const char* meaning, const char* scaled = "") {
    char shown[32];
    snprintf(shown, sizeof shown, "%.15g", otherwise);
    help_ += "  " + std::string(name) + " (default " + shown + scaled + "): " + meaning + "\n";
    for (Given& given : given_) {
      if (given.name != name) continue;
      given.known = true;
      char* end = nullptr;
      const double value = strtod(given.value.c_str(), &end);
      if (end == given.value.c_str() || *end != '\0' || !std::isfinite(value) || value < 0)
        fail(given.name, "needs a number, 0 or more");
      return value;
    }
    return otherwise;
  }

  // The size of a structure, or whatever else a shorter run has as a longer one has it.
  uint32_t count(const char* name, uint32_t otherwise, const char* meaning) {
    const double value = real(name, otherwise, meaning);
    if (value > UINT32_MAX || value != std::floor(value)) fail(name, "needs a whole number below 2^32");
    return static_cast<uint32_t>(value);
  }

  // A number of steps: what was asked for, times --scale, and at least 1.
  uint64_t work(const char* name, uint64_t otherwise, const char* meaning) {
    const double amount = real(name, static_cast<double>(otherwise), meaning, ", times --scale") * scale_;
    return amount < 1 ? 1 : static_cast<uint64_t>(amount);
  }

  uint32_t threads() {
    const uint32_t n = count("--threads", 2, "threads that do the work");
    return n == 0 ? 1 : n;
  }

  // For a workload of one thread.
  void one_thread() {
    if (count("--threads", 1, "one thread does the work: 1 is all that is accepted") != 1)
      fail("--threads", "must be 1 here: one thread does the work");
  }

  // For options that are numbers, and yet make no sense.
  static void accept(bool sensible, const char* what) {
    if (sensible) return;
    fprintf(stderr, "%s\n", what);
    exit(2);
  }

  // Call after the last option: prints help where asked, refuses what is unknown.
  void done() const {
    for (const Given& given : given_) {
      if (given.name == "--help") {
        printf("%s\n%s", about_, help_.c_str());
        exit(0);
      }
      if (!given.known) fail(given.name, is_known(given.name) ? "is given twice" : "is not an option here; see --help");
    }
  }

 private:
  struct Given {
    std::string name;
    std::string value;
    bool known;
  };

  bool is_known(const std::string& name) const {
    for (const Given& given : given_) {
      if (given.name == name && given.known) return true;
    }
    return false;
  }

  [[noreturn]] static void fail(const std::string& name, const char* why) {
    fprintf(stderr, "%s %s\n", name.c_str(), why);
    exit(2);
  }

  const char* about_;
  std::vector<Given> given_;
  std::string help_;
  double scale_ = 1.0;
};

// Runs work(0) .. work(threads - 1), each on a thread of its own, and waits for all.
inline void on_threads(uint32_t threads, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> running;
  running.reserve(threads);
  for (uint32_t i = 0; i < threads; ++i) running.emplace_back(work, i);
  for (std::thread& thread : running) thread.join();
}

// What a simulation with --roi is about, as long as it lives: what the papers time, without the building before and the
// tearing down after it. A workload may have several, one after the other.
class Region {
 public:
  Region() { ANNEX_REGION_BEGIN(); }
  ~Region() { ANNEX_REGION_END(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

// The same where each thread builds what it then works on itself: the region lasts from when all have built until all
// have worked.
class RegionOfThreads {
 public:
  explicit RegionOfThreads(uint32_t threads) : all_(threads, Mark{}) {}
  void built() { all_.arrive_and_wait(); }
  void worked() { all_.arrive_and_wait(); }

 private:
  struct Mark {
    bool inside = false;
    void operator()() noexcept {
      inside = !inside;
      if (inside) {
        ANNEX_REGION_BEGIN();
      } else {
        ANNEX_REGION_END();
      }
    }
  };
  std::barrier<Mark> all_;
};

// Seconds that work() took on the wall clock.
template <typename Work>
double seconds_with_building(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The same of what builds nothing first: all of it is a region.
template <typename Work>
double seconds_of(Work&& work) {
  return seconds_with_building([&] {
    const Region region;
    work();
  });
}

// One line of JSON. `more`: fields that only this program has, each after a comma.
inline void report(const char* name, uint64_t ops, double seconds, uint64_t checksum, const std::string& more = {}) {
  printf("{\"workload\":\"%s\",\"ops\":%" PRIu64 ",\"seconds\":%.6f,\"score\":%.6e,\"checksum\":%" PRIu64 "%s}\n", name,
         ops, seconds, seconds / static_cast<double>(ops > 0 ? ops : 1), checksum, more.c_str());
}

}  // namespace workload
