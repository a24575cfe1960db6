// The program's system calls, as the simulated machine sees them. Each is still the host's to do; here
//
//   time       it is charged for, and what it says of the time, of random numbers and of CPUs is the simulated
//   machine's waiting    futexes and sleeps wait in simulated time, and the host's own call then returns at once; what
//   may block in
//              the host for other reasons (a pipe, a socket, a child process) goes without a turn meanwhile
//   memory     mappings, and what is given back, are told to the page model
//   processes  fork and exec are noted: what comes after them is not simulated
//
// x86-64 Linux. Before and after are called by the thread itself, around its call.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "guest/simulation.h"

namespace annex::sim {

using Arguments = std::array<uint64_t, 6>;

class SystemCalls {
 public:
  explicit SystemCalls(Simulation& simulation) : simulation_(simulation) {}

  void before(GuestThread& thread, int64_t number, const Arguments& arguments);
  void after(GuestThread& thread, int64_t number, int64_t result);

  // The thread ends: the kernel has cleared the word that others wait for, if they do.
  void ended(GuestThread& thread);

  // What rdtsc says.
  uint64_t time_stamp(const GuestThread& thread) const;

  const std::map<int64_t, uint64_t>& counts() const { return counts_; }  // by their number
  uint64_t left_to_the_host() const { return left_to_the_host_; }
  uint64_t forks() const { return forks_; }
  // The program that execve was asked for; empty: none.
  const std::string& replaced_by() const { return replaced_by_; }

 private:
  // Guest memory that is other than the program wrote it while its call runs.
  struct Patch {
    Address address = 0;
    std::array<unsigned char, 16> was{};
    uint32_t bytes = 0;
  };
  struct Call {
    Arguments arguments{};
    Patch patch;
  };

  Call& call_of(const GuestThread& thread);
  void patch(Call& call, Address address, const void* value, uint32_t bytes);
  void futex(GuestThread& thread, Call& call);
  void futex_wait(GuestThread& thread, Call& call, bool absolute, bool realtime, uint32_t bits);
  void sleep(GuestThread& thread, Call& call, Address request, bool absolute, bool realtime);
  static bool may_block(int64_t number, const Arguments& arguments);
  void mapped(const GuestThread& thread, const Call& call, Address address);

  Cycles cycles_from_now(const GuestThread& thread, Address timespec_at) const;
  Cycles cycles_at(Address timespec_at, bool realtime) const;
  int64_t nanoseconds(Cycles at) const;

  Simulation& simulation_;
  std::vector<Call> calls_;  // by thread
  Address break_ = 0;
  std::map<int64_t, uint64_t> counts_;
  uint64_t left_to_the_host_ = 0;
  uint64_t forks_ = 0;
  std::string replaced_by_;
};

}  // namespace annex::sim
