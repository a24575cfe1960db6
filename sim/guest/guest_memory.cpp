// The program's memory: see guest_memory.h.
#include "guest/guest_memory.h"

#include <fcntl.h>
#include <unistd.h>

namespace annex::sim {

namespace {

// Opened before the program could use up its descriptors, and again in a forked child.
int memory_file() {
  static pid_t opened_by = 0;
  static int fd = -1;
  if (opened_by != getpid()) {
    opened_by = getpid();
    fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    // Out of the way of the program's own descriptors.
    const int far = fcntl(fd, F_DUPFD_CLOEXEC, 900);
    if (far >= 0) {
      close(fd);
      fd = far;
    }
  }
  return fd;
}

}  // namespace

bool read_guest(Address address, void* out, size_t bytes) {
  return pread(memory_file(), out, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

bool write_guest(Address address, const void* data, size_t bytes) {
  return pwrite(memory_file(), data, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

}  // namespace annex::sim
