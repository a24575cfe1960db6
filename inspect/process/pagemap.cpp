// Resident pages: see pagemap.h.
#include "process/pagemap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace annex::inspect {

Pagemap::Pagemap(pid_t process)
    : file_(open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC)),
      page_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {}

Pagemap::~Pagemap() {
  if (file_ >= 0) close(file_);
}

uint64_t Pagemap::resident(uint64_t start, uint64_t bytes) const {
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  constexpr size_t kAtOnce = 4096;
  uint64_t entries[kAtOnce];
  uint64_t total = 0;
  const uint64_t end = start + bytes;
  for (uint64_t page = start / page_; file_ >= 0 && page * page_ < end;) {
    const uint64_t wanted = std::min<uint64_t>(kAtOnce, (end + page_ - 1) / page_ - page);
    const ssize_t read = pread(file_, entries, wanted * sizeof *entries, static_cast<off_t>(page * sizeof *entries));
    if (read < static_cast<ssize_t>(sizeof *entries)) break;
    const uint64_t got = static_cast<uint64_t>(read) / sizeof *entries;
    for (uint64_t i = 0; i < got; ++i, ++page) {
      if ((entries[i] & kPresent) == 0) continue;
      total += std::min(end, (page + 1) * page_) - std::max(start, page * page_);
    }
  }
  return total;
}

}  // namespace annex::inspect
