// System calls: see system_calls.h.
#include "guest/system_calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "guest/guest_memory.h"

namespace annex::sim {

namespace {

// When the simulated machine was switched on, in seconds: of the monotonic clocks, and since 1970 of the others.
constexpr int64_t kBoot = 1000;
constexpr int64_t kEpoch = 1767225600;

constexpr int64_t kSecond = 1000000000;

constexpr uint64_t kMemory = uint64_t{64} << 30;  // MEMORY_KIB in lab/annex_lab/sim/surroundings.py
constexpr int64_t kTicks = 100;                   // a second, of times(): what QEMU says in the auxiliary vector

// No call of Linux: sim/qemu/parked.c.
constexpr int64_t kPark = 0x616e6e78;

bool realtime_clock(uint64_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

// A call on a descriptor that would wait for somebody else now: pipes, sockets, terminals.
bool would_block(int descriptor, short events) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return false;
  if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode) && !S_ISCHR(status.st_mode)) return false;
  struct pollfd one = {descriptor, events, 0};
  return poll(&one, 1, 0) == 0;
}

}  // namespace

SystemCalls::SystemCalls(Simulation& simulation, uint64_t gap)
    : simulation_(simulation), system_(simulation.machine().system), costs_(simulation.machine()), gap_(gap) {}

SystemCalls::Call& SystemCalls::call_of(const GuestThread& thread) {
  if (calls_.size() <= thread.id) calls_.resize(thread.id + 1);
  return calls_[thread.id];
}

void SystemCalls::charge(GuestThread& thread, CallKind kind, Cycles beside) {
  const Cycles cycles = costs_.of(kind) + beside;
  costs_.count(kind, cycles);
  simulation_.spend(thread, cycles);
}

// --- time -----------------------------------------------------------------------------------------------------------

int64_t SystemCalls::nanoseconds(Cycles at) const {
  return static_cast<int64_t>(static_cast<double>(at) / simulation_.machine().ghz);
}

uint64_t SystemCalls::time_stamp(const GuestThread& thread) const {
  return simulation_.machine().from_ns(static_cast<double>(kBoot * kSecond)) + Simulation::now(thread);
}

Cycles SystemCalls::cycles_from_now(const GuestThread& thread, Address timespec_at) const {
  const auto time = read_guest<struct timespec>(timespec_at);
  if (!time) return Simulation::now(thread);
  return Simulation::now(thread) +
         simulation_.machine().from_ns(static_cast<double>(time->tv_sec) * 1e9 + static_cast<double>(time->tv_nsec));
}

Cycles SystemCalls::cycles_at(Address timespec_at, bool realtime) const {
  const auto time = read_guest<struct timespec>(timespec_at);
  if (!time) return 0;
  const double seconds = static_cast<double>(time->tv_sec - (realtime ? kEpoch : kBoot));
  return simulation_.machine().from_ns(std::max(0.0, seconds * 1e9 + static_cast<double>(time->tv_nsec)));
}

// A kernel fills as many bytes as all the CPUs that there could be need, and says how many: programs look no further.
int64_t SystemCalls::affinity(uint64_t bytes, Address to) const {
  const unsigned cores = simulation_.machine().thread_cores();
  const size_t needed = (cores + 63) / 64 * 8;
  if (bytes % 8 != 0 || bytes < needed) return -EINVAL;
  std::vector<unsigned char> mask(needed);
  for (unsigned i = 0; i < cores; ++i) mask[i / 8] = static_cast<unsigned char>(mask[i / 8] | 1u << (i % 8));
  if (!write_guest(to, mask.data(), mask.size())) return -EFAULT;
  return static_cast<int64_t>(needed);
}

struct sysinfo SystemCalls::system_information(const GuestThread& thread) const {
  struct sysinfo out = {};
  out.uptime = kBoot + nanoseconds(Simulation::now(thread)) / kSecond;
  out.totalram = kMemory;
  out.freeram = kMemory - simulation_.memory().pages().resident_bytes();
  out.procs = 1;
  out.mem_unit = 1;
  return out;
}

// All time is the program's: the clocks of CPU time say so too.
struct rusage SystemCalls::usage(const GuestThread& thread) const {
  const int64_t us = nanoseconds(Simulation::now(thread)) / 1000;
  struct rusage out = {};
  out.ru_utime = {us / 1000000, us % 1000000};
  out.ru_maxrss = static_cast<long>(simulation_.memory().pages().statistics.peak_resident / 1024);
  return out;
}

// --- waiting --------------------------------------------------------------------------------------------------------

SystemCalls::Answer SystemCalls::futex_wait(GuestThread& thread, const Arguments& arguments, bool absolute,
                                            bool realtime, uint32_t bits) {
  const Address word = arguments[0];
  const uint32_t expected = static_cast<uint32_t>(arguments[2]);
  const Address timeout = arguments[3];
  const auto value = read_guest<uint32_t>(word);
  if (!value || *value != expected) {
    charge(thread, CallKind::kFutexAgain);
    return {};  // the host says so too
  }
  charge(thread, CallKind::kFutexWait);
  Cycles until = kNever;
  if (timeout != 0) until = absolute ? cycles_at(timeout, realtime) : cycles_from_now(thread, timeout);
  simulation_.futexes().wait(thread.id, word, expected, bits);
  if (simulation_.sleep(thread, until)) return 0;
  simulation_.futexes().forget(thread.id);
  return -ETIMEDOUT;
}

SystemCalls::Answer SystemCalls::futex(GuestThread& thread, const Arguments& a) {
  const int operation = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
  const bool realtime = (a[1] & FUTEX_CLOCK_REALTIME) != 0;
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) charge(thread, CallKind::kFutexWake);
  const auto wake = [&](unsigned waiter) {
    simulation_.spend(thread, simulation_.machine().from_us(system_.futex_woken_us));
    simulation_.wake(waiter, Simulation::now(thread) + simulation_.machine().from_us(system_.wake_us));
  };
  switch (operation) {
    case FUTEX_WAIT:
      return futex_wait(thread, a, false, realtime, Futexes::kAnyBit);
    case FUTEX_WAIT_BITSET:
      return futex_wait(thread, a, true, realtime, static_cast<uint32_t>(a[5]));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      simulation_.futexes().wake(a[0], operation == FUTEX_WAKE ? Futexes::kAnyBit : static_cast<uint32_t>(a[5]),
                                 static_cast<uint32_t>(a[2]), wake);
      return {};
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
      simulation_.futexes().wake(a[0], Futexes::kAnyBit, static_cast<uint32_t>(a[2]), wake);
      simulation_.futexes().requeue(a[0], a[4], static_cast<uint32_t>(a[3]));
      return {};
    case FUTEX_WAKE_OP:
      // Whether those of the second word are to wake depends on what the host finds there; one too many may wake up.
      simulation_.futexes().wake(a[0], Futexes::kAnyBit, static_cast<uint32_t>(a[2]), wake);
      simulation_.futexes().wake(a[4], Futexes::kAnyBit, static_cast<uint32_t>(a[3]), wake);
      return {};
    default:
      return {};
  }
}

SystemCalls::Answer SystemCalls::sleep(GuestThread& thread, Address request, bool absolute, bool realtime) {
  if (!read_guest<struct timespec>(request)) return -EFAULT;
  simulation_.sleep(thread, absolute ? cycles_at(request, realtime) : cycles_from_now(thread, request));
  return 0;
}

Cycles SystemCalls::end_of_wait(const GuestThread& thread, int64_t number, const Arguments& arguments) const {
  const auto after_ms = [&](uint64_t argument) {
    const int ms = static_cast<int>(argument);
    return ms < 0 ? kNever : Simulation::now(thread) + simulation_.machine().from_us(1000.0 * ms);
  };
  switch (number) {
    case SYS_poll:
      return after_ms(arguments[2]);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return after_ms(arguments[3]);
    case SYS_ppoll:
      return arguments[2] != 0 ? cycles_from_now(thread, arguments[2]) : kNever;
    case SYS_pselect6:
      return arguments[4] != 0 ? cycles_from_now(thread, arguments[4]) : kNever;
    case SYS_select: {
      const auto time = read_guest<struct timeval>(arguments[4]);
      if (!time) return kNever;
      const double us = static_cast<double>(time->tv_sec) * 1e6 + static_cast<double>(time->tv_usec);
      return Simulation::now(thread) + simulation_.machine().from_us(us);
    }
    default:
      return kNever;
  }
}

bool SystemCalls::may_block(int64_t number, const Arguments& arguments) {
  const int descriptor = static_cast<int>(arguments[0]);
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
      return would_block(descriptor, POLLIN);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
      return would_block(descriptor, POLLOUT);
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_connect:
    case SYS_flock:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return true;
    case SYS_futex: {
      const int operation = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
      return operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 || operation == FUTEX_WAIT_REQUEUE_PI;
    }
    default:
      return false;
  }
}

// --- memory ---------------------------------------------------------------------------------------------------------

void SystemCalls::add_functions(const Call& call, Address address) {
  const auto& [hint, length, protection, flags, descriptor, offset] = call.arguments;
  if ((flags & MAP_ANONYMOUS) != 0 || (protection & PROT_EXEC) == 0) return;
  const std::string link = "/proc/self/fd/" + std::to_string(static_cast<int>(descriptor));
  char path[4096];
  const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
  if (bytes <= 0) return;
  simulation_.functions().add_file(std::string(path, static_cast<size_t>(bytes)), address, offset);
}

SystemCalls::Change SystemCalls::advise(const Call& call, Cycles now) {
  const auto& a = call.arguments;
  Pages& pages = simulation_.memory().pages();
  Change change{.from = a[0], .to = a[0] + a[1]};
  switch (a[2]) {
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
      pages.advise_huge(change.from, change.to, a[2] == MADV_HUGEPAGE);
      break;
    case MADV_DONTNEED:
      change.pages = pages.drop(change.from, change.to, now);
      break;
    case MADV_FREE: {
      // They stay: the kernel takes them only when memory is short.
      const uint64_t resident = pages.resident_pages(change.from, change.to);
      change.beside = simulation_.machine().from_us(system_.free_page_us * static_cast<double>(resident));
      change.flush = resident > 0;
      break;
    }
    default:
      break;
  }
  return change;
}

// The call was successful.
SystemCalls::Change SystemCalls::change(const GuestThread& thread, CallKind kind, const Call& call, Address result) {
  const auto& a = call.arguments;
  Pages& pages = simulation_.memory().pages();
  const Cycles now = Simulation::now(thread);
  Change change{.from = a[0], .to = a[0] + a[1]};
  switch (kind) {
    case CallKind::kMmap: {
      change = {.from = result, .to = result + a[1]};
      const PageKind page = (a[3] & MAP_ANONYMOUS) != 0 ? PageKind::kAnonymous : PageKind::kFile;
      change.pages = pages.map(change.from, change.to, page, now);
      add_functions(call, result);
      break;
    }
    case CallKind::kMunmap:
      change.pages = pages.unmap(change.from, change.to, now);
      break;
    case CallKind::kMremap:
      change.flush = result != a[0] && pages.resident_pages(change.from, change.to) > 0;
      change.pages = pages.remap(a[0], a[1], result, a[2], now);
      break;
    case CallKind::kMprotect:
      // More rights need no flush: who lacks them asks again.
      change.flush = (a[2] & PROT_WRITE) == 0 && pages.resident_pages(change.from, change.to) > 0;
      break;
    case CallKind::kBrk:
      change = {.from = result, .to = result};
      if (break_ != 0 && result > break_) pages.map(break_, result, PageKind::kAnonymous, now);
      if (result < break_) {
        change.to = break_;
        change.pages = pages.unmap(result, break_, now);
      }
      break_ = result;
      break;
    default:
      change = advise(call, now);
      break;
  }
  if (change.pages > 0) {
    change.flush = true;
    change.beside = simulation_.machine().from_us(system_.page_us * static_cast<double>(change.pages));
  }
  return change;
}

// The host has the break where the gap begins, until the program moves it: then the gap is mapped with its heap.
int64_t SystemCalls::heap_begins(int64_t result) {
  if (heap_ != 0) return result;
  heap_ = static_cast<Address>(result) + gap_;
  return static_cast<int64_t>(heap_);
}

// The other cores that run threads of the process are interrupted, and this one waits for them.
Cycles SystemCalls::shoot_down(GuestThread& thread) {
  const unsigned targets = simulation_.interrupt_others(thread, simulation_.machine().from_us(system_.interrupt_us));
  if (targets == 0) return 0;
  ++shoot_downs_;
  interrupts_ += targets;
  return simulation_.machine().from_us(system_.shoot_down_us + system_.shoot_down_core_us * (targets - 1));
}

// The host has done it; here it takes its turn at the lock, and its time.
void SystemCalls::memory_call(GuestThread& thread, CallKind kind, const Call& call, int64_t result) {
  if (result < 0 && result >= -4095) return charge(thread, CallKind::kPlain);
  Change change = this->change(thread, kind, call, static_cast<Address>(result));
  if (change.flush) {
    simulation_.memory().shoot_down(change.from, change.to);
    change.beside += shoot_down(thread);
  }
  MmapLock& lock = simulation_.memory().pages().lock;
  const Cycles now = Simulation::now(thread);
  const Cycles cost = costs_.of(kind);
  Cycles start = now;
  if (kind == CallKind::kMunmap || kind == CallKind::kBrk) {
    start = lock.write(now, cost, change.beside);
  } else if (kind == CallKind::kMadvise && call.arguments[2] != MADV_HUGEPAGE && call.arguments[2] != MADV_NOHUGEPAGE) {
    start = lock.read(now, cost + change.beside);
  } else {
    start = lock.write(now, cost + change.beside);
  }
  charge(thread, kind, start - now + change.beside);
}

// --- all ------------------------------------------------------------------------------------------------------------

SystemCalls::Answer SystemCalls::answer(GuestThread& thread, int64_t number, const Arguments& a) {
  switch (number) {
    case SYS_futex:
      return futex(thread, a);
    case SYS_nanosleep:
      return sleep(thread, a[0], false, false);
    case SYS_clock_nanosleep:
      return sleep(thread, a[2], (a[1] & TIMER_ABSTIME) != 0, realtime_clock(a[0]));
    case SYS_time: {
      const int64_t seconds = kEpoch + nanoseconds(Simulation::now(thread)) / kSecond;
      if (a[0] != 0) write_guest(a[0], seconds);
      return seconds;
    }
    case SYS_times: {
      const int64_t ticks = nanoseconds(Simulation::now(thread)) / (kSecond / kTicks);
      if (a[0] != 0) write_guest(a[0], tms{ticks, 0, 0, 0});
      return kBoot * kTicks + ticks;
    }
    case SYS_brk:
      if (a[0] < heap_) return static_cast<int64_t>(break_);
      return {};
    case SYS_rseq:
      return simulation_.sequences_seen_by(thread).call(a[0], static_cast<uint32_t>(a[1]), static_cast<uint32_t>(a[2]),
                                                        simulation_.core_of(thread));
    case SYS_sched_getaffinity: {
      cpu_set_t any;
      if (sched_getaffinity(static_cast<pid_t>(a[0]), sizeof any, &any) != 0 && errno == ESRCH) return {};
      return affinity(a[1], a[2]);
    }
    default:
      return {};
  }
}

SystemCalls::Answer SystemCalls::before(GuestThread& thread, int64_t number, const Arguments& arguments) {
  simulation_.settle(thread);
  if (number == kPark) {
    simulation_.park(thread);
    return 0;
  }
  ++counts_[number];
  call_of(thread) = {.arguments = arguments};
  const CallKind kind = kind_of(number, arguments);
  if (!changes_memory(kind) && number != SYS_futex) charge(thread, kind);
  if (const Answer own = answer(thread, number, arguments)) return own;
  switch (number) {
    case SYS_sched_yield:
      simulation_.yield(thread);
      break;
    case SYS_execve:
    case SYS_execveat: {
      char path[256] = {};
      read_guest(arguments[number == SYS_execve ? 0 : 1], path, sizeof path - 1);
      replaced_by_ = path;
      break;
    }
    case SYS_exit:
      thread.sequences.ends();
      break;
    case SYS_fork:
    case SYS_vfork:
      ++forks_;
      break;
    case SYS_clone:
      if ((arguments[0] & CLONE_THREAD) == 0) ++forks_;
      break;
    default:
      break;
  }
  if (may_block(number, arguments)) {
    const Cycles until = end_of_wait(thread, number, arguments);
    if (until == Simulation::now(thread)) return {};  // it only looks
    call_of(thread).until = until;
    ++left_to_the_host_;
    simulation_.leave(thread);
  }
  return {};
}

bool SystemCalls::starts_thread(const GuestThread& thread, int64_t number, int64_t result) {
  return number == SYS_clone && result > 0 && (call_of(thread).arguments[0] & CLONE_THREAD) != 0;
}

void SystemCalls::after(GuestThread& thread, int64_t number, int64_t result) {
  if (thread.away) simulation_.come_back(thread);
  Call call = call_of(thread);
  const bool in_vain = result == 0 && call.until != kNever;
  if (in_vain && call.until > Simulation::now(thread)) simulation_.sleep(thread, call.until);
  const auto& a = call.arguments;
  const CallKind kind = kind_of(number, a);
  if (changes_memory(kind)) return memory_call(thread, kind, call, result);
  switch (number) {
    case SYS_clock_gettime: {
      if (result != 0) break;
      const int64_t ns = nanoseconds(Simulation::now(thread));
      const bool of_cpu = a[0] == CLOCK_PROCESS_CPUTIME_ID || a[0] == CLOCK_THREAD_CPUTIME_ID;
      const int64_t base = realtime_clock(a[0]) ? kEpoch : of_cpu ? 0 : kBoot;
      write_guest(a[1], timespec{base + ns / kSecond, ns % kSecond});
      break;
    }
    case SYS_gettimeofday: {
      const int64_t ns = nanoseconds(Simulation::now(thread));
      if (a[0] != 0) write_guest(a[0], timeval{kEpoch + ns / kSecond, ns % kSecond / 1000});
      break;
    }
    case SYS_rt_sigaction:
      if (const auto handler = read_guest<Address>(a[1]); result == 0 && handler && *handler > 1) {
        simulation_.add_handler(*handler);
      }
      break;
    case SYS_membarrier:
      if (a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) simulation_.interrupt_all();
      break;
    case SYS_getrandom: {
      for (int64_t at = 0; at < result; at += 8) {
        const uint64_t value = simulation_.random();
        write_guest(a[0] + static_cast<uint64_t>(at), &value, static_cast<size_t>(std::min<int64_t>(8, result - at)));
      }
      break;
    }
    case SYS_uname:
      if (result == 0) write_guest(a[0], utsname{"Linux", "simulated", "6.1.0", "#1 SMP", "x86_64", "(none)"});
      break;
    case SYS_sysinfo:
      if (result == 0) write_guest(a[0], system_information(thread));
      break;
    case SYS_getrusage:
      if (result == 0) write_guest(a[1], static_cast<int>(a[0]) == RUSAGE_CHILDREN ? rusage{} : usage(thread));
      break;
    case SYS_getcpu:
      if (a[0] != 0) write_guest(a[0], simulation_.core_of(thread));
      if (a[1] != 0) write_guest(a[1], 0u);
      break;
    default:
      break;
  }
}

void SystemCalls::ended(GuestThread& thread) {
  simulation_.settle(thread);
  const Cycles at = Simulation::now(thread) + simulation_.machine().from_us(system_.wake_us);
  simulation_.futexes().wake_changed(
      [](Address word, uint32_t expected) { return read_guest<uint32_t>(word) != expected; },
      [&](unsigned waiter) { simulation_.wake(waiter, at); });
}

nlohmann::json SystemCalls::to_json() const {
  uint64_t calls = 0;
  nlohmann::json by_number = nlohmann::json::object();
  for (const auto& [number, count] : counts_) {
    by_number[std::to_string(number)] = count;
    calls += count;
  }
  nlohmann::json lock = nlohmann::json::object();
  MmapLockStatistics::each(simulation_.memory().pages().lock.statistics,
                           [&](const char* name, uint64_t value, auto&&...) { lock[name] = value; });
  return {{"count", calls},
          {"by_number", by_number},
          {"by_kind", costs_.to_json()},
          {"mmap_lock", lock},
          {"shoot_downs", shoot_downs_},
          {"interrupts", interrupts_},
          {"left_to_the_host", left_to_the_host_},
          {"forks", forks_}};
}

}  // namespace annex::sim
