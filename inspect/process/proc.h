// What /proc says of a process: what and whose it is, what it has mapped, how much of that is resident.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace annex::inspect {

struct ProcStatus {
  std::string name;                          // of the program, at most 15 characters
  pid_t process = 0;                         // where the number was a thread's
  char state = '?';                          // as in /proc/PID/status: R, S, T, Z, ...
  uid_t user = 0;                            // effective
  bool has_memory = false;                   // not a kernel thread, nor one that is ending
  uint64_t resident = 0, peak_resident = 0;  // bytes
};
// Throws Failure where there is no such process.
ProcStatus read_status(pid_t process);

struct Mapping {
  uint64_t start, end, offset;
  bool readable, writable, executable;
  uint64_t inode;
  std::string path;  // as the process sees it, or with " (deleted)" behind it; empty for none
};
// In order of address. Throws where they can't be read; empty where the process is ending.
std::vector<Mapping> read_mappings(pid_t process);

// Exact, where status' numbers may be some hundred KiB off: the kernel looks at each page. Nothing where that can't be
// read.
std::optional<uint64_t> exact_resident(pid_t process);

// Microseconds of CPU that the process's threads of that name have used.
uint64_t cpu_us_of_threads(pid_t process, const std::string& name);
// The file that it runs; empty where that can't be read.
std::string program_path(pid_t process);
// A thread's name; empty where there is no such thread.
std::string thread_name(pid_t process, long thread);

}  // namespace annex::inspect
