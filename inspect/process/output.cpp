// Standard output: see output.h.
#include "process/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "message.h"

namespace annex::inspect {

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Failure(kFailed, fmt::format("standard output: {}", strerror(errno)));
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace annex::inspect
