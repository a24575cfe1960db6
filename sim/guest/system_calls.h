// The program's system calls, as the simulated machine sees them. Most are still the host's to do; here
//
//   time       it is charged for by its kind (call_costs.h), and what it says of the time, of random numbers, of CPUs,
//              of memory and of the system is the simulated machine's
//   waiting    futexes and sleeps wait in simulated time, and the host knows nothing of them; what may block in the
//              host for other reasons (a pipe, a socket, a child process) goes without a turn meanwhile
//   memory     mappings, and what is given back, are told to the page model; calls that change the map take turns at
//              the mmap lock, and interrupt the cores that may hold translations which are no more (a shoot-down)
//   processes  fork and exec are noted: what comes after them is not simulated
//
// x86-64 Linux. Before and after are called by the thread itself, around its call.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "guest/call_costs.h"
#include "guest/simulation.h"

struct rusage;
struct sysinfo;

namespace annex::sim {

class SystemCalls {
 public:
  // The program's heap begins `gap` bytes behind where the host has it begin.
  SystemCalls(Simulation& simulation, uint64_t gap);

  // The answer, where it is the simulated machine's alone; the host's call is then left out.
  std::optional<int64_t> before(GuestThread& thread, int64_t number, const Arguments& arguments);
  void after(GuestThread& thread, int64_t number, int64_t result);
  // What brk says, where the host has said `result`: the first one asks where the heap begins.
  int64_t heap_begins(int64_t result);
  // Whether that call has started a thread, whose number it says.
  bool starts_thread(const GuestThread& thread, int64_t number, int64_t result);

  // The thread ends: the kernel has cleared the word that others wait for, if they do.
  void ended(GuestThread& thread);

  // What rdtsc says.
  uint64_t time_stamp(const GuestThread& thread) const;

  nlohmann::json to_json() const;
  // The program that execve was asked for; empty: none.
  const std::string& replaced_by() const { return replaced_by_; }

 private:
  struct Call {
    Arguments arguments{};
    Cycles until = 0;  // the host says 0 where it waited for descriptors in vain: then it is this time
  };

  Call& call_of(const GuestThread& thread);
  void charge(GuestThread& thread, CallKind kind, Cycles beside = 0);
  using Answer = std::optional<int64_t>;
  Answer futex(GuestThread& thread, const Arguments& arguments);
  Answer futex_wait(GuestThread& thread, const Arguments& arguments, bool absolute, bool realtime, uint32_t bits);
  Answer sleep(GuestThread& thread, Address request, bool absolute, bool realtime);
  Answer answer(GuestThread& thread, int64_t number, const Arguments& arguments);
  static bool may_block(int64_t number, const Arguments& arguments);
  // When a wait for descriptors is over; kNever: it has no end, or is no such call.
  Cycles end_of_wait(const GuestThread& thread, int64_t number, const Arguments& arguments) const;
  // What a memory call does to pages: what it takes beside its own cost, and whether TLBs may know them still.
  struct Change {
    Address from = 0;
    Address to = 0;
    uint64_t pages = 0;  // given back
    Cycles beside = 0;
    bool flush = false;
  };
  void memory_call(GuestThread& thread, CallKind kind, const Call& call, int64_t result);
  Change change(const GuestThread& thread, CallKind kind, const Call& call, Address result);
  Change advise(const Call& call, Cycles now);
  void add_functions(const Call& call, Address address);
  Cycles shoot_down(GuestThread& thread);

  Cycles cycles_from_now(const GuestThread& thread, Address timespec_at) const;
  Cycles cycles_at(Address timespec_at, bool realtime) const;
  int64_t nanoseconds(Cycles at) const;
  int64_t affinity(uint64_t bytes, Address to) const;
  struct sysinfo system_information(const GuestThread& thread) const;
  struct rusage usage(const GuestThread& thread) const;

  Simulation& simulation_;
  const SystemParameters& system_;
  CallCosts costs_;
  std::vector<Call> calls_;  // by thread
  uint64_t gap_;
  Address heap_ = 0;  // where it begins; 0: not asked for yet
  Address break_ = 0;
  std::map<int64_t, uint64_t> counts_;  // by their number
  uint64_t shoot_downs_ = 0;
  uint64_t interrupts_ = 0;
  uint64_t left_to_the_host_ = 0;
  uint64_t forks_ = 0;
  std::string replaced_by_;
};

}  // namespace annex::sim
