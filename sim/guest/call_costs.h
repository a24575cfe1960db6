// What system calls take, by kind, and how many of each there were.
//
// Parameters: SystemParameters, rounded to cycles here, once. What a call takes beside its kind's cost (pages given
// back, threads woken, the mmap lock, a shoot-down) is added by system_calls.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

using Arguments = std::array<uint64_t, 6>;

enum class CallKind : uint8_t {
  kPlain,
  kClock,
  kYield,
  kSleep,
  kFutexAgain,  // a wait that finds the word changed
  kFutexWait,
  kFutexWake,
  kClone,
  kExit,
  kMmap,  // from here on: memory
  kMunmap,
  kMremap,
  kMprotect,
  kBrk,
  kMadvise,
};
inline constexpr size_t kCallKinds = static_cast<size_t>(CallKind::kMadvise) + 1;

// It takes its time when the host has done it, at the mmap lock.
constexpr bool changes_memory(CallKind kind) { return kind >= CallKind::kMmap; }

// A futex call's is that of a wait or a wake, as it is asked for.
CallKind kind_of(int64_t number, const Arguments& arguments);

class CallCosts {
 public:
  explicit CallCosts(const Machine& machine);

  Cycles of(CallKind kind) const { return cycles_[static_cast<size_t>(kind)]; }

  void count(CallKind kind, Cycles cycles) {
    Done& done = done_[static_cast<size_t>(kind)];
    ++done.count;
    done.cycles += cycles;
  }
  nlohmann::json to_json() const;  // of what was counted

 private:
  struct Done {
    uint64_t count = 0;
    Cycles cycles = 0;
  };

  std::array<Cycles, kCallKinds> cycles_;
  std::array<Done, kCallKinds> done_ = {};
};

}  // namespace annex::sim
