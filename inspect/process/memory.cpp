// Another process's memory: see memory.h.
#include "process/memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "message.h"
#include "process/refusal.h"

namespace annex::inspect {

size_t Memory::read_some(uint64_t address, void* to, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const iovec here = {static_cast<char*>(to) + done, bytes - done};
    const iovec there = {reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t read = process_vm_readv(process_, &here, 1, &there, 1, 0);
    if (read > 0) {
      done += static_cast<size_t>(read);
    } else if (read == 0 || errno == EFAULT) {
      break;
    } else if (errno != EINTR && errno != EAGAIN) {
      fail(errno);
    }
  }
  return done;
}

std::string Memory::text(uint64_t address, size_t most) const {
  std::string text;
  char piece[256];
  while (text.size() < most) {
    const size_t bytes = read_some(address + text.size(), piece, std::min(sizeof piece, most - text.size()));
    const size_t length = strnlen(piece, bytes);
    text.append(piece, length);
    if (length < bytes || bytes == 0) break;
  }
  return text;
}

void Memory::write(uint64_t address, const void* from, size_t bytes) const {
  const iovec here = {const_cast<void*>(from), bytes};
  const iovec there = {reinterpret_cast<void*>(address), bytes};
  const ssize_t written = process_vm_writev(process_, &here, 1, &there, 1, 0);
  if (written == static_cast<ssize_t>(bytes)) return;
  if (written >= 0 || errno == EFAULT) fail_changed();
  fail(errno);
}

void Memory::fail(int error) const {
  if (error == EPERM) refuse(process_);
  if (error == ESRCH) throw Failure(kNoProcess, fmt::format("process {} has ended", process_));
  throw Failure(kFailed, fmt::format("process {}: its memory can't be read: {}", process_, strerror(error)));
}

void Memory::fail_changed() const {
  throw Failure(kNoProcess, fmt::format("process {} has ended, or runs another program by now", process_));
}

}  // namespace annex::inspect
