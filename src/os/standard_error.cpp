// Standard error: see standard_error.h.
#include "os/standard_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "os/system_call.h"

namespace annex::os {

namespace {

enum class Frozen { kNot, kMayWrite, kMayNot };

constinit bool noted = false;
constinit struct stat at_start = {};  // st_mode is 0 where it was closed
constinit std::atomic<Frozen> frozen{Frozen::kNot};

bool get_status(struct stat* file) { return system_call(SYS_fstat, STDERR_FILENO, reinterpret_cast<long>(file)) == 0; }

bool may_write() {
  if (!noted) return true;
  struct stat now;
  if (at_start.st_mode == 0 || !get_status(&now)) return false;
  if (now.st_dev == at_start.st_dev && now.st_ino == at_start.st_ino) return true;
  if (S_ISCHR(now.st_mode) || S_ISFIFO(now.st_mode)) return true;
  return S_ISREG(now.st_mode) && (system_call(SYS_fcntl, STDERR_FILENO, F_GETFL) & O_APPEND) != 0;
}

}  // namespace

void note_standard_error() {
  if (!get_status(&at_start)) at_start.st_mode = 0;
  noted = true;
}

void freeze_standard_error() { frozen.store(may_write() ? Frozen::kMayWrite : Frozen::kMayNot); }

int standard_error() {
  const Frozen last = frozen.load(std::memory_order_relaxed);
  const bool may = last == Frozen::kNot ? may_write() : last == Frozen::kMayWrite;
  return may ? STDERR_FILENO : -1;
}

}  // namespace annex::os
