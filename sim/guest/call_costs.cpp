// What system calls take: see call_costs.h.
#include "guest/call_costs.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annex::sim {

namespace {

struct Kind {
  const char* name;
  double SystemParameters::*us;
};

// By CallKind.
constexpr std::array<Kind, kCallKinds> kKinds = {{
    {"plain", &SystemParameters::call_us},
    {"clock", &SystemParameters::clock_us},
    {"yield", &SystemParameters::yield_us},
    {"sleep", &SystemParameters::sleep_us},
    {"futex_again", &SystemParameters::futex_again_us},
    {"futex_wait", &SystemParameters::futex_wait_us},
    {"futex_wake", &SystemParameters::futex_wake_us},
    {"clone", &SystemParameters::clone_us},
    {"exit", &SystemParameters::exit_us},
    {"mmap", &SystemParameters::mmap_us},
    {"munmap", &SystemParameters::munmap_us},
    {"mremap", &SystemParameters::mremap_us},
    {"mprotect", &SystemParameters::mprotect_us},
    {"brk", &SystemParameters::brk_us},
    {"madvise", &SystemParameters::madvise_us},
}};

struct Numbered {
  int64_t number;
  CallKind kind;
};

// QEMU's user mode refuses clone3, and the program then calls clone.
constexpr Numbered kNumbers[] = {
    {SYS_clock_gettime, CallKind::kClock},
    {SYS_gettimeofday, CallKind::kClock},
    {SYS_time, CallKind::kClock},
    {SYS_getcpu, CallKind::kClock},
    {SYS_sched_yield, CallKind::kYield},
    {SYS_nanosleep, CallKind::kSleep},
    {SYS_clock_nanosleep, CallKind::kSleep},
    {SYS_futex, CallKind::kFutexWake},
    {SYS_clone, CallKind::kClone},
    {SYS_exit, CallKind::kExit},
    {SYS_mmap, CallKind::kMmap},
    {SYS_munmap, CallKind::kMunmap},
    {SYS_mremap, CallKind::kMremap},
    {SYS_mprotect, CallKind::kMprotect},
    {SYS_brk, CallKind::kBrk},
    {SYS_madvise, CallKind::kMadvise},
};

}  // namespace

CallKind kind_of(int64_t number, const Arguments& arguments) {
  const auto* found =
      std::find_if(std::begin(kNumbers), std::end(kNumbers), [=](const Numbered& n) { return n.number == number; });
  if (found == std::end(kNumbers)) return CallKind::kPlain;
  switch (found->number) {
    case SYS_futex: {
      const int operation = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
      return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ? CallKind::kFutexWait : CallKind::kFutexWake;
    }
    case SYS_clock_gettime:
      // The vDSO asks the kernel for those of a process or a thread.
      return arguments[0] == CLOCK_PROCESS_CPUTIME_ID || arguments[0] == CLOCK_THREAD_CPUTIME_ID ? CallKind::kPlain
                                                                                                 : CallKind::kClock;
    default:
      return found->kind;
  }
}

CallCosts::CallCosts(const Machine& machine) {
  for (size_t i = 0; i < kCallKinds; ++i) cycles_[i] = machine.from_us(machine.system.*kKinds[i].us);
}

nlohmann::json CallCosts::to_json() const {
  nlohmann::json out = nlohmann::json::object();
  for (size_t i = 0; i < kCallKinds; ++i) {
    if (done_[i].count == 0) continue;
    out[kKinds[i].name] = {{"count", done_[i].count}, {"cycles", done_[i].cycles}};
  }
  return out;
}

}  // namespace annex::sim
