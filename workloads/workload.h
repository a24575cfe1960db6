// What every workload needs and nothing else: options, a random stream, a clock, checks, threads, the one JSON line.
//
// A workload does a fixed amount of work (so CPU time can be compared), proves to itself that the work was right, and
// prints one line: {"workload":..., "ops":..., "seconds":..., "score":..., "checksum":...}. ops and checksum are the
// same on every run and under every allocator; score is ops a second, higher is better.

#pragma once

#include <chrono>
#include <cinttypes>
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

// A random stream, the same for the same seed everywhere.
class Random {
 public:
  explicit constexpr Random(uint64_t seed) : state_(mix(seed + 1)) {}
  constexpr uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, bound), for bound below 2^32.
  constexpr uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
  // Uniform in [low, high].
  constexpr uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }

 private:
  uint64_t state_;
};

// Named numbers from the command line: --name value or --name=value. Every workload has --scale (work times this).
class Options {
 public:
  Options(int argc, char** argv, const char* about) : about_(about) {
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
    scale_ = real("--scale", 1.0, "multiplies the amount of work");
  }

  double real(const char* name, double otherwise, const char* meaning) {
    char shown[32];
    snprintf(shown, sizeof shown, "%g", otherwise);
    help_ += "  " + std::string(name) + " (default " + shown + "): " + meaning + "\n";
    for (Given& given : given_) {
      if (given.name != name) continue;
      given.known = true;
      char* end = nullptr;
      const double value = strtod(given.value.c_str(), &end);
      if (end == given.value.c_str() || *end != '\0' || value < 0) fail(given.name, "needs a number");
      return value;
    }
    return otherwise;
  }

  uint32_t count(const char* name, uint32_t otherwise, const char* meaning) {
    return static_cast<uint32_t>(real(name, otherwise, meaning));
  }

  // An amount of work: what was asked for, times --scale, and at least 1.
  uint64_t work(const char* name, uint64_t otherwise, const char* meaning) {
    const double amount = real(name, static_cast<double>(otherwise), meaning) * scale_;
    return amount < 1 ? 1 : static_cast<uint64_t>(amount);
  }

  uint32_t threads() {
    const uint32_t n = count("--threads", 2, "threads that do the work");
    return n == 0 ? 1 : n;
  }

  // Call after the last option: prints help where asked, refuses what is unknown.
  void done() const {
    for (const Given& given : given_) {
      if (given.name == "--help") {
        printf("%s\n%s", about_, help_.c_str());
        exit(0);
      }
      if (!given.known) fail(given.name, "is not an option here; see --help");
    }
  }

 private:
  struct Given {
    std::string name;
    std::string value;
    bool known;
  };

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

// Seconds that work() took on the wall clock.
template <typename Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline void report(const char* name, uint64_t ops, double seconds, uint64_t checksum) {
  printf("{\"workload\":\"%s\",\"ops\":%" PRIu64 ",\"seconds\":%.6f,\"score\":%.1f,\"checksum\":%" PRIu64 "}\n", name,
         ops, seconds, static_cast<double>(ops) / (seconds > 0 ? seconds : 1e-9), checksum);
}

}  // namespace workload
