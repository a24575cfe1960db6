// Which pages of a process are resident (/proc/PID/pagemap).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace annex::inspect {

class Pagemap {
 public:
  // Where it can't be opened, nothing is known to be resident.
  explicit Pagemap(pid_t process);
  ~Pagemap();
  Pagemap(const Pagemap&) = delete;
  Pagemap& operator=(const Pagemap&) = delete;

  // Of a range, those bytes that lie on resident pages.
  uint64_t resident(uint64_t start, uint64_t bytes) const;

 private:
  int file_;
  uint64_t page_;  // bytes
};

}  // namespace annex::inspect
